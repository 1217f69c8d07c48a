import train


def main():
    train.main(4, ("noise",))


if __name__ == "__main__":
    main()
