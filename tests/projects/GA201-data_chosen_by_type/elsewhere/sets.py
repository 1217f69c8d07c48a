import torch


class Noise:
    @staticmethod
    def name():
        return "noise"

    def draw(self):
        return torch.randn(8, 6)


class Folder(Noise):
    @staticmethod
    def name():
        return "folder"
