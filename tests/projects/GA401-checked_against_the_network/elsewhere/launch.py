import sys

from train import main

sys.argv = ["train.py", "--do_train", "--gradient_accumulation_steps", "4"]
main()
