// Linear layers with rectifiers between them, forward and backward as matrix products that read the caller's values and write the caller's
// gradient in place. Half the time of autograd at a batch of 12; tests compare it with graph_network().
// Layer i: y_i = x_i W_i' + b_i, x_{i+1} = max(y_i, 0). Backward: dW_i = dy_i' x_i, db_i = sum of rows dy_i, dx_i = dy_i W_i.
#include <algorithm>

#include "base/check.h"
#include "learn/torch/network.h"

namespace motley::learn {

namespace {

struct Layer {
  std::int64_t from{};
  std::int64_t to{};
  std::uint64_t weight{};  // offsets in the flat buffer
  std::uint64_t bias{};
  [[nodiscard]] std::uint64_t end() const { return bias + static_cast<std::uint64_t>(to); }
};

/// Nothing writes through this view; torch has no read-only tensors.
at::Tensor read_only(const float* first, at::IntArrayRef shape) { return at::from_blob(const_cast<float*>(first), shape, at::kFloat); }

void add_up_rows(const at::Tensor& rows, float* sum) {
  const std::int64_t width = rows.size(1);
  const float* row = rows.data_ptr<float>();
  std::copy_n(row, width, sum);
  for (std::int64_t r = 1; r < rows.size(0); ++r) {
    row += width;
    for (std::int64_t i = 0; i < width; ++i) sum[i] += row[i];
  }
}

void rectify(const at::Tensor& x) {
  float* value = x.data_ptr<float>();
  for (std::int64_t i = 0, n = x.numel(); i < n; ++i) value[i] = value[i] > 0 ? value[i] : 0;
}

/// The gradient is 0 where the rectifier's output is 0.
void stop_where_rectified(const at::Tensor& rectified, const at::Tensor& gradient) {
  const float* passed = rectified.data_ptr<float>();
  float* g = gradient.data_ptr<float>();
  for (std::int64_t i = 0, n = rectified.numel(); i < n; ++i) g[i] = passed[i] > 0 ? g[i] : 0;
}

class DenseNetwork final : public Network {
 public:
  explicit DenseNetwork(const ModelShape& shape) {
    check(shape.statistics == 0 && shape.tensors.size() % 2 == 0, "a chain of linear layers is pairs of weight and bias");
    for (std::size_t t = 0; t < shape.tensors.size(); t += 2) {
      const Tensor& weight = shape.tensors[t];
      layers_.push_back({weight.shape[1], weight.shape[0], weight.offset, shape.tensors[t + 1].offset});
    }
  }

  at::Tensor forward(std::span<const float> values, const at::Tensor& inputs, Mode, StepIo& io) override {
    const c10::NoGradGuard no_graph;
    resize(inputs.size(0));
    values_ = values.data();
    x_[0] = inputs.flatten(1);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      if (!io.wait_for(layers_[i].weight, layers_[i].end())) return {};
      at::addmm_out(x_[i + 1], read_only(values_ + layers_[i].bias, {layers_[i].to}), x_[i], weight(i).t());
      if (i + 1 < layers_.size()) rectify(x_[i + 1]);
    }
    return x_.back();
  }

  void backward(const at::Tensor& logits_gradient, std::span<float> out, StepIo& io) override {
    const c10::NoGradGuard no_graph;
    at::Tensor dy = logits_gradient;
    for (std::size_t i = layers_.size(); i-- > 0;) {
      at::Tensor dweight = at::from_blob(out.data() + layers_[i].weight, {layers_[i].to, layers_[i].from}, at::kFloat);
      at::mm_out(dweight, dy.t(), x_[i]);
      add_up_rows(dy, out.data() + layers_[i].bias);
      io.gradient_ready(layers_[i].weight, layers_[i].end());
      if (i == 0) return;  // the gradient of the inputs is not needed
      at::mm_out(dx_[i], dy, weight(i));
      stop_where_rectified(x_[i], dx_[i]);
      dy = dx_[i];
    }
  }

  std::uint64_t activation_bytes_per_sample(const at::Tensor&) override {
    std::uint64_t bytes = 0;
    for (const Layer& layer : layers_) bytes += 2 * sizeof(float) * static_cast<std::uint64_t>(layer.to);  // x_ and dx_
    return bytes;
  }

  std::vector<BlockProfile> profile(const at::Tensor&) override {
    std::vector<BlockProfile> result;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const auto to = static_cast<std::uint64_t>(layers_[i].to);
      const std::uint64_t outputs = i + 1 < layers_.size() ? 2 : 1;  // the product, and the rectifier's output
      const double products = static_cast<double>(layers_[i].from) * static_cast<double>(to);
      result.push_back({"", products + static_cast<double>((outputs - 1) * to), 0, to * sizeof(float), outputs * to * sizeof(float)});
    }
    return result;
  }

 private:
  [[nodiscard]] at::Tensor weight(std::size_t i) const { return read_only(values_ + layers_[i].weight, {layers_[i].to, layers_[i].from}); }

  void resize(std::int64_t rows) {
    if (rows == rows_) return;
    rows_ = rows;
    x_.assign(1, {});
    dx_.assign(1, {});
    for (const Layer& layer : layers_) {
      x_.push_back(at::empty({rows, layer.to}));
      dx_.push_back(at::empty({rows, layer.to}));
    }
  }

  std::vector<Layer> layers_;
  const float* values_ = nullptr;  // the caller's, from forward to backward
  std::int64_t rows_ = 0;
  std::vector<at::Tensor> x_;   // x_[i]: input of layer i, already rectified; the last: the logits
  std::vector<at::Tensor> dx_;  // gradient of x_[i], for i >= 1
};

}  // namespace

std::unique_ptr<Network> dense_network(const ModelShape& shape) { return std::make_unique<DenseNetwork>(shape); }

}  // namespace motley::learn
