class Reporter:
    def log(self, name):
        return lambda function: function

    def counted(self, name, total):
        return lambda function: function
