from torch.optim.lr_scheduler import LambdaLR


class WarmupLinearSchedule(LambdaLR):
    def __init__(self, optimizer, warmup_steps, t_total):
        def share(step):
            if step < warmup_steps:
                return step / max(1, warmup_steps)
            return max(0.0, (t_total - step) / max(1, t_total - warmup_steps))

        super().__init__(optimizer, share)
