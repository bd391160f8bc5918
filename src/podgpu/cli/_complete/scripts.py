"""What a shell has to load. Each script asks podgpu itself what fits."""

BASH = """\
# podgpu completion for bash; load it with: source <(podgpu completion bash)
_podgpu() {
    local words current before found
    # The line is cut at spaces alone: bash would cut at = and : too.
    read -ra words <<< "${COMP_LINE:0:COMP_POINT}"
    [[ "${COMP_LINE:COMP_POINT-1:1}" == " " ]] && words+=("")
    current="${words[${#words[@]}-1]}"
    before="${current%"${current##*[=:]}"}"
    COMPREPLY=()
    while IFS= read -r found; do
        COMPREPLY+=("${found#"$before"}")
    done < <("${words[0]}" completion bash -- "${words[@]:1}" 2>/dev/null)
}
complete -F _podgpu podgpu kubectl-podgpu
"""

ZSH = """\
#compdef podgpu kubectl-podgpu
# podgpu completion for zsh; load it with: source <(podgpu completion zsh)
_podgpu() {
    local -a found
    found=("${(@f)$("${words[1]}" completion zsh -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    compadd -- "${(@)found:#}"
}
compdef _podgpu podgpu kubectl-podgpu
"""

FISH = """\
# podgpu completion for fish; load it with: podgpu completion fish | source
function __podgpu_complete
    set -l words (commandline -opc)
    $words[1] completion fish -- $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c podgpu -f -a '(__podgpu_complete)'
complete -c kubectl-podgpu -f -a '(__podgpu_complete)'
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}
