def multi_tensor_applier(operation, flag, lists, *rest):
    return operation(flag, lists, *rest)
