import assert from "node:assert/strict";
import { test } from "node:test";
import { shortName } from "./names.ts";

const CASES: [string, string][] = [
  ["aten::mm", "aten::mm"],
  ["autograd::engine::evaluate_function: AddmmBackward0", "autograd::engine::evaluate_function: AddmmBackward0"],
  ["torch/nn/functional.py(2889): layer_norm", "layer_norm (functional.py:2889)"],
  [String.raw`C:\app\train.py(12): main`, "main (train.py:12)"],
  ["nn.Module: Linear_71", "Linear_71"],
  ["void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>(int, float)", "vectorized_elementwise_kernel"],
  ["void at::native::(anonymous namespace)::indexFunc<float>(float)", "indexFunc"],
  ["void split_kernel<float, 2ul>(at::Tensor)", "split_kernel"],
  ["void plain_kernel(float*)", "plain_kernel"],
  ["Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)"],
  ["<built-in method run_backward of torch._C._EngineBase object at 0x7f>", "<built-in method run_backward of torch._C._EngineBase object at 0x7f>"],
  ["", ""],
];

test("short names keep what says most", () => {
  for (const [name, short] of CASES) assert.equal(shortName(name), short);
});

test("a name of 4 kB, or one that looks like a template and is none, is not lost", () => {
  assert.equal(shortName(`void a::b<${"x".repeat(4000)}>()`), "b");
  assert.equal(shortName("<::>"), "<::>");
});
