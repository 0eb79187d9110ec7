"""CIFAR-100 as the experiment `classes` needs it: the archive (`reader`) made into a file of features (`features`)."""
