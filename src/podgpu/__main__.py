import sys

from podgpu.cli.main import main

sys.exit(main())
