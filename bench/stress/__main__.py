import sys

from bench.stress.phases import main

if __name__ == "__main__":
    sys.exit(main())
