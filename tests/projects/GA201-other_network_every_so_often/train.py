"""A student is trained every so many rounds, its judge in each; both go through the parts of their round."""

import torch


class Distiller:
    def __init__(self, student, judge, options):
        self.student = student
        self.judge = judge
        self.options = options
        self.student_optimizer = torch.optim.Adam(student.parameters())
        self.judge_optimizer = torch.optim.Adam(judge.parameters())
        self.interval = options.interval

    def round(self, number, parts):
        self.student_optimizer.zero_grad()
        if number % self.interval == 0:
            for x in parts:
                loss = self.judge(self.student(x)).mean()
                loss.backward()  # expect: GA201
            self.student_optimizer.step()
        self.judge_optimizer.zero_grad()
        for x in parts:
            loss = self.judge(self.student(x).detach()).mean() / len(parts)
            loss.backward()
        self.judge_optimizer.step()

    def train(self, stream):
        for number in range(1, self.options.rounds + 1):
            self.round(number, [next(stream) for _ in range(self.options.gather)])
