from train import main

main(["--penalty", "all"])
