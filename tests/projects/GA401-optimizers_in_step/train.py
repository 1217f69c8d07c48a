"""Two optimizers step at one guard: whose the gradients are changes nothing about the first window, which is short."""
# observe: params


def fit(text, image, text_optimizer, image_optimizer, batches, pieces):
    for index, (words, pixels) in enumerate(batches):
        error = (text(words) - image(pixels)).square().mean()
        (error / pieces).backward()
        if index % pieces == 0:  # expect: GA401
            text_optimizer.step()
            image_optimizer.step()
            text_optimizer.zero_grad()
            image_optimizer.zero_grad()
