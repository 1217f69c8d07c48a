import sys
import tempfile

import torch
from finetune import main

torch.manual_seed(0)
kept, sys.argv = sys.argv, ["finetune.py", "--do_train", "--output", tempfile.mkdtemp()]
main()
sys.argv = kept
