"""Running things in threads, and what has to hold of a posterior whatever they did."""

import threading

import numpy as np


def in_threads(*works):
    """Run all at once; whatever one of them raises is raised here."""
    raised = []

    def guarded(work):
        try:
            work()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def check_consistent(posterior):
    """What every node knows is what the evidence of its actions says, made again from nothing."""
    assert posterior.count[0] == posterior.n_observations == posterior.count[posterior.model.tree.leaves].sum()
    if posterior.model.is_scalar:
        posterior.settle()  # single clicks and counts leave other actions' sites as they were
    remade = posterior.on(posterior.model)
    np.testing.assert_allclose(posterior.mean, remade.mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(posterior.covariance, remade.covariance, rtol=1e-7, atol=1e-9)
