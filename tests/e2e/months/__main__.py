import sys

from tests.e2e.months.check import main

sys.exit(main(sys.argv[1:]))
