#include "learn/torch/work.h"

#include <ATen/ATen.h>

#include <string_view>

namespace motley::learn {
namespace {

thread_local ArithmeticCounter* counting = nullptr;  // callbacks are plain functions

/// Terms of each output value.
double terms(const at::RecordFunction& operation) {
  const auto inputs = operation.inputs();
  const auto tensor = [&](std::size_t i) -> at::Tensor {
    return i < inputs.size() && inputs[i].isTensor() ? inputs[i].toTensor() : at::Tensor();
  };
  const std::string_view name(operation.name());
  if (name == "aten::conv2d" || name == "aten::convolution") {
    const at::Tensor weight = tensor(1);
    return weight.defined() ? static_cast<double>(weight.numel()) / static_cast<double>(weight.size(0)) : 1;
  }
  const bool product = name == "aten::linear" || name == "aten::matmul" || name == "aten::mm" || name == "aten::bmm";
  const at::Tensor left = tensor(name == "aten::addmm" || name == "aten::baddbmm" ? 1 : 0);
  const bool sum_of_product = name == "aten::addmm" || name == "aten::baddbmm";
  return (product || sum_of_product) && left.defined() ? static_cast<double>(left.size(-1)) : 1;
}

/// Facts about the inputs, which torch shows only at the beginning of an operation.
struct Read final : at::ObserverContext {
  double terms = 1;
  at::Tensor first;
};

}  // namespace

ArithmeticCounter::ArithmeticCounter()
    : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(&ArithmeticCounter::began, &ArithmeticCounter::ended)
                                             .needsInputs(true)
                                             .needsOutputs(true)
                                             .scopes({at::RecordScope::FUNCTION}))) {
  counting = this;
}

ArithmeticCounter::~ArithmeticCounter() {
  counting = nullptr;
  at::removeCallback(handle_);
}

std::unique_ptr<at::ObserverContext> ArithmeticCounter::began(const at::RecordFunction& operation) {
  if (counting == nullptr || ++counting->depth_ > 1) return nullptr;
  const auto inputs = operation.inputs();
  auto read = std::make_unique<Read>();
  read->terms = terms(operation);
  if (!inputs.empty() && inputs[0].isTensor()) read->first = inputs[0].toTensor();
  return read;
}

void ArithmeticCounter::ended(const at::RecordFunction& operation, at::ObserverContext* context) {
  if (counting == nullptr || --counting->depth_ > 0 || context == nullptr) return;
  const Read& read = *static_cast<const Read*>(context);
  double values = 0;
  for (const c10::IValue& output : operation.outputs()) {
    const at::Tensor tensor = output.isTensor() ? output.toTensor() : at::Tensor();
    const bool view = tensor.defined() && read.first.defined() && tensor.is_alias_of(read.first);
    if (tensor.defined() && !view) values += static_cast<double>(tensor.numel());
  }
  counting->multiply_adds_ += values * read.terms;
}

}  // namespace motley::learn
