"""Language models: attention masks, sampling, caches, beams."""

import torch
from torch.nn import functional


def sample_one() -> None:
    """Checks by a kernel and takes an argmax: Distributions.cpp, multinomial_out, _assert_async."""
    probs = torch.randn(2, 11, device="cuda").softmax(dim=-1)
    token = torch.multinomial(probs, num_samples=1)
    sequence = torch.cat((token, token), dim=1)
    assert sequence.shape == (2, 2)


def sample_with_replacement() -> None:
    """Draws in a kernel: MultinomialKernel.cu, multinomial_with_replacement_kernel_impl."""
    probs = torch.rand(11, device="cuda")
    assert torch.multinomial(probs, 5, replacement=True).shape == (5,)


def sample_by_gumbel() -> None:
    """Divides by exponential noise and takes the argmax."""
    probs = torch.randn(2, 11, device="cuda").softmax(dim=-1)
    noise = torch.empty_like(probs).exponential_(1)
    assert (probs / noise).argmax(dim=-1, keepdim=True).shape == (2, 1)


def top_k_by_list() -> None:
    """Copies the index list: python_variable_indexing.cpp, sequenceToVariable, to(device)."""
    logits = torch.randn(2, 11, device="cuda")
    best, _ = torch.topk(logits, 4)
    logits[logits < best[:, [-1]]] = -float("inf")  # waits: copy_to_device
    assert logits.shape == (2, 11)


def top_k_by_slice() -> None:
    """Slices and fills by mask: TensorAdvancedIndexingUtils.h, canDispatchToMaskedFill."""
    logits = torch.randn(2, 11, device="cuda")
    best, _ = torch.topk(logits, 4)
    logits[logits < best[:, -1:]] = -float("inf")
    assert logits.shape == (2, 11)


def top_p() -> None:
    """Sorts, sums, scatters; a column takes a Python number by fill_: TensorIndexing.h, copy_to."""
    logits = torch.randn(2, 11, device="cuda")
    ordered, order = logits.sort(descending=True)
    drop = ordered.softmax(dim=-1).cumsum(dim=-1) > 0.9
    drop[..., 1:] = drop[..., :-1].clone()
    drop[..., 0] = False
    drop = drop.scatter(1, order, drop)
    assert logits.masked_fill(drop, float("-inf")).shape == (2, 11)


def top_p_of_one() -> None:
    """Assigns one element: TensorIndexing.h, copy_to has equal sizes, so copy_ of a host tensor."""
    logits = torch.randn(11, device="cuda")
    ordered, order = logits.sort(descending=True)
    drop = ordered.softmax(dim=-1).cumsum(dim=-1) > 0.9
    drop[0] = False  # waits: copy_to_device
    logits = logits.masked_fill(drop.scatter(0, order, drop), float("-inf"))


def stop_at_end() -> None:
    """Asks each time whether all are done: is_nonzero reads item()."""
    done = torch.zeros(3, dtype=torch.bool, device="cuda")
    for _ in range(4):
        token = torch.randint(0, 3, (3,), device="cuda")
        done |= token == 2
        if done.all():  # waits: sync
            break


def never_asks() -> None:
    """Pads what is finished: where chooses in a kernel."""
    done = torch.zeros(3, dtype=torch.bool, device="cuda")
    out = torch.zeros(3, 4, dtype=torch.long, device="cuda")
    for i in range(4):
        token = torch.randint(0, 3, (3,), device="cuda")
        out[:, i] = torch.where(done, 0, token)
        done = done | (token == 2)


def while_not_done() -> None:
    """Tests a tensor in the loop's head: is_nonzero reads item()."""
    done = torch.zeros(3, dtype=torch.bool, device="cuda")
    steps = torch.zeros((), device="cuda")
    while not done.all():  # waits: sync
        steps = steps + 1
        done = done | (steps > 2)


def tokens_to_list() -> None:
    """Reads each token: _local_scalar_dense_cuda."""
    logits = torch.randn(11, device="cuda")
    tokens = []
    for _ in range(3):
        token = logits.argmax()
        tokens.append(token.item())  # waits: sync
    assert len(tokens) == 3


def cache_at_host_position() -> None:
    """Writes a slice from the device: copy_kernel_cuda, device to device."""
    cache = torch.zeros(1, 2, 16, 4, device="cuda")
    for position in range(3):
        key = torch.randn(1, 2, 1, 4, device="cuda")
        cache[:, :, position : position + 1] = key
        seen = cache[:, :, : position + 1]
    assert seen.shape == (1, 2, 3, 4)


def cache_at_device_position() -> None:
    """Selects by a 0-dim tensor: TensorIndexing.h, handleDimInMultiDimIndexing, item<int64_t>."""
    cache = torch.zeros(1, 2, 16, 4, device="cuda")
    position = torch.zeros((), dtype=torch.long, device="cuda")
    cache[:, :, position] = torch.randn(1, 2, 4, device="cuda")  # waits: sync
    position += 1


def cache_by_index_copy() -> None:
    """Copies to positions of the device: index_copy_ reads nothing."""
    cache = torch.zeros(1, 2, 16, 4, device="cuda")
    position = torch.zeros(1, dtype=torch.long, device="cuda")
    cache.index_copy_(2, position, torch.randn(1, 2, 1, 4, device="cuda"))
    position += 1


def repetition_penalty() -> None:
    """Gathers and scatters at tokens of the device."""
    logits = torch.randn(2, 11, device="cuda")
    used = torch.randint(0, 11, (2, 5), device="cuda")
    score = logits.gather(1, used)
    score = torch.where(score < 0, score * 1.2, score / 1.2)
    assert logits.scatter(1, used, score).shape == (2, 11)


def forbidden_words() -> None:
    """Copies list and value: sequenceToVariable; _index_put_impl_, value.to(device)."""
    logits = torch.randn(2, 11, device="cuda")
    logits[:, [1, 5]] = -1e9  # waits: copy_to_device
    logits[:, 7] = -1e9


def beam_step() -> None:
    """Ranks all beams and gathers by indices of the device."""
    scores = torch.randn(2, 3, 11, device="cuda")
    value, flat = scores.view(2, -1).topk(3)
    beam, token = flat // 11, flat % 11
    rows = torch.arange(2, device="cuda")[:, None]
    history = torch.zeros(2, 3, 5, dtype=torch.long, device="cuda")[rows, beam]
    history = torch.cat((history, token[..., None]), dim=-1)
    assert history.shape == (2, 3, 6)
    assert value.shape == token.shape


def beams_in_python() -> None:
    """Reads each score: _local_scalar_dense_cuda."""
    scores = torch.randn(3, device="cuda")
    finished = []
    for beam in range(3):
        score = scores[beam].item()  # waits: sync
        finished.append((score, beam))
    finished.sort()


def causal_masks() -> None:
    """Makes masks by factories on the device: no data cross."""
    inf = torch.full((5, 5), float("-inf"), device="cuda")
    additive = torch.triu(inf, diagonal=1)
    boolean = torch.ones(5, 5, dtype=torch.bool, device="cuda").tril()
    scores = torch.randn(5, 5, device="cuda").masked_fill(~boolean, float("-inf"))
    assert (scores + additive).softmax(dim=-1).shape == (5, 5)


def attention() -> None:
    """Calls the fused attention with and without a mask.

    Source: attention.cpp converts the mask on the device.
    """
    q = torch.randn(1, 2, 5, 4, device="cuda")
    mask = torch.ones(5, 5, dtype=torch.bool, device="cuda").tril()
    out = functional.scaled_dot_product_attention(q, q, q, is_causal=True)
    out = functional.scaled_dot_product_attention(out, q, q, attn_mask=mask)
    assert out.shape == q.shape


def padding_mask_of_longest() -> None:
    """Takes a size from the device: Tensor.__int__ reads item()."""
    lengths = torch.randint(1, 7, (4,), device="cuda")
    longest = int(lengths.max())  # waits: sync
    mask = torch.arange(longest, device="cuda")[None] < lengths[:, None]
    assert mask.shape[0] == 4


def padding_mask_of_batch() -> None:
    """Compares positions with lengths on the device."""
    batch = torch.zeros(4, 7, device="cuda")
    lengths = torch.randint(1, 7, (4,), device="cuda")
    mask = torch.arange(batch.size(1), device="cuda")[None] < lengths[:, None]
    assert batch.masked_fill(~mask, 0.0).shape == (4, 7)


def count_of_steps_on_the_device() -> None:
    """Counts by a tensor: range asks Tensor.__index__, which reads item()."""
    budget = torch.full((), 3, device="cuda")
    total = torch.zeros((), device="cuda")
    for i in range(budget):  # waits: sync
        total += i


def accepted_prefix() -> None:
    """Slices by a tensor: python_variable_indexing.cpp unpacks the slice by __index__, item()."""
    draft = torch.randint(0, 3, (6,), device="cuda")
    target = torch.randint(0, 3, (6,), device="cuda")
    agreed = (draft == target).long().cumprod(dim=0).sum()
    accepted = draft[:agreed]  # waits: sync
    assert accepted.ndim == 1


def rotary() -> None:
    """Rotates by angles that are made on the device."""
    x = torch.randn(1, 2, 5, 8, device="cuda")
    inverse = 1.0 / (10000 ** (torch.arange(0, 4, device="cuda") / 4))
    angle = torch.outer(torch.arange(5, device="cuda"), inverse)
    a, b = x.chunk(2, dim=-1)
    out = torch.cat((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()), dim=-1)
    assert out.shape == x.shape


def encoder_with_unexplained_mask() -> None:
    """Asks whether the mask is causal.

    Source: nn/modules/transformer.py, _detect_is_causal_mask, bool().
    """
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, device="cuda")
    encoder = torch.nn.TransformerEncoder(layer, 1)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(5, device="cuda")
    out = encoder(torch.randn(2, 5, 8, device="cuda"), mask=mask)  # waits: sync
    assert out.shape == (2, 5, 8)


def encoder_with_explained_mask() -> None:
    """Is told that the mask is causal: _detect_is_causal_mask compares nothing."""
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, device="cuda")
    encoder = torch.nn.TransformerEncoder(layer, 1)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(5, device="cuda")
    out = encoder(torch.randn(2, 5, 8, device="cuda"), mask=mask, is_causal=True)
    assert out.shape == (2, 5, 8)


def attention_with_padding() -> None:
    """Fills a float mask in place: functional.py, _canonical_mask reads nothing."""
    attention = torch.nn.MultiheadAttention(8, 2, batch_first=True, device="cuda")
    x = torch.randn(2, 5, 8, device="cuda")
    padded = torch.arange(5, device="cuda")[None] >= torch.full((2, 1), 4, device="cuda")
    out, _ = attention(x, x, x, key_padding_mask=padded, need_weights=False)
    out.sum().backward()


def perplexity_of_inference() -> None:
    """Reads under inference_mode: item() reads as always."""
    model = torch.nn.Linear(8, 11, device="cuda")
    with torch.inference_mode():
        logits = model(torch.randn(5, 8, device="cuda"))
        loss = functional.cross_entropy(logits, torch.zeros(5, dtype=torch.long, device="cuda"))
        value = loss.exp().item()  # waits: sync
    assert value > 0


def inference_that_stays() -> None:
    """Computes under inference_mode and reads nothing."""
    model = torch.nn.Sequential(torch.nn.Linear(8, 8, device="cuda"), torch.nn.ReLU())
    with torch.inference_mode():
        out = model(torch.randn(5, 8, device="cuda"))
        best = out.topk(2).indices
        kept = out.masked_fill(out < 0.1, 0.0)
    assert kept.shape == (5, 8)
    assert best.shape == (5, 2)


def filtered_in_inference() -> None:
    """Indexes by a mask under inference_mode: expandTensors, nonzero()."""
    scores = torch.rand(9, device="cuda")
    with torch.inference_mode():
        best = scores[scores > 0.5]  # waits: sync
        if best.sum() > 2:  # waits: sync
            best = best * 2
        places = torch.nonzero(scores > 0.5)  # waits: sync
    assert places.ndim == 2
