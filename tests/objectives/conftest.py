import pytest
import torch


@pytest.fixture(autouse=True)
def _same_numbers_on_one_core():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # tiny tensors: threads that wait for each other are slow
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield
    torch.set_num_threads(threads)
