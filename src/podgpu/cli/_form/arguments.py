"""The arguments that commands have in common, spelled as kubectl spells them."""

from argparse import ArgumentParser, Namespace

from podgpu.cli import _commands
from podgpu.cli._form.output import FORMS
from podgpu.errors import UserError
from podgpu.insight.selection import PodSelection, label_tests


def add_output(parser: ArgumentParser) -> None:
    _commands.add_output(parser, FORMS)
    parser.add_argument("--no-headers", action="store_true", help="print no line of headings")


def add_selection(parser: ArgumentParser) -> None:
    parser.add_argument("-n", "--namespace", metavar="NAMESPACE", help="only pods of this namespace")
    parser.add_argument(
        "-A", "--all-namespaces", action="store_true", help="pods of all namespaces, the default"
    )
    parser.add_argument(
        "-l",
        "--selector",
        metavar="SELECTOR",
        default="",
        help="only pods with these labels, such as team=search; an agent shows those of --kube.pod-labels",
    )
    parser.add_argument("--node", metavar="NODE", default="", help="only this node")


def selection(arguments: Namespace) -> PodSelection:
    if arguments.namespace and arguments.all_namespaces:
        raise UserError("-n means one namespace and -A all of them; give one of them only")
    return PodSelection(arguments.namespace or "", arguments.node, label_tests(arguments.selector))
