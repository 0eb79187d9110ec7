def exported(log, experiment, query):
    raise NotImplementedError
