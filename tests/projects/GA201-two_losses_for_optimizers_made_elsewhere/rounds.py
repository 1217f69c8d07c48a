"""An actor's and a critic's loss of each part, both whole; whichever optimizer has which parameters, both sums lack 1/N."""
# observe: params


def rounds(self, data):
    for _ in range(self.epochs):
        done = 0
        self.acting.zero_grad()
        self.judging.zero_grad()
        for start in range(0, len(data), self.part):
            chance, value, gain = self.evaluate(data[start : start + self.part])
            policy = -(chance * gain).mean()
            policy.backward()  # expect: GA201
            (value - gain).pow(2).mean().backward()  # expect: GA201
            done += 1
            if done % self.gather == 0:  # expect: GA403
                self.acting.step()
                self.judging.step()
                self.acting.zero_grad()
                self.judging.zero_grad()
