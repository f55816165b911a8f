from benchmark_utils.real import split_if_there
from benchopt import BaseDataset

from benchmarks.datasets import arxiv


class Dataset(BaseDataset):
    """TF-IDF of arXiv abstracts, `cs` against the rest."""

    name = "arxiv"

    def get_data(self):
        return {"split": split_if_there(arxiv)}
