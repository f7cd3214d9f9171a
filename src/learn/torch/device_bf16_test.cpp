// A learner that computes in bf16: sending gradients of weights as bf16 and receiving weights as bf16 changes no value. On the CPU bit for
// bit; on a GPU, where there is one, up to the difference between its own repetitions.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "codec/bf16.h"
#include "learn/torch/learners.h"
#include "learn/torch/test_models.h"

namespace motley::learn {
namespace {

constexpr std::uint64_t slice_values = 700;  // values of a slice
constexpr std::uint8_t bf16 = 16, fp32 = 32;

/// Every tensor in slices; weights as bf16.
std::vector<GradientEncoding::Slice> slices_of(const ModelShape& shape) {
  std::vector<GradientEncoding::Slice> slices;
  for (const Tensor& tensor : shape.tensors)
    for (std::uint64_t done = 0; done < tensor.count; done += slice_values)
      slices.push_back({tensor.offset + done, std::min(slice_values, tensor.count - done),
                        tensor.kind == TensorKind::parameter && tensor.shape.size() >= 2 ? bf16 : fp32});
  return slices;
}

codec::Bytes sent_as_bf16(std::span<const float> values) {
  codec::Bytes bytes;
  codec::Bf16().encode(values, bytes);
  return bytes;
}

Values widened(std::span<const std::byte> bytes) {
  Values values(bytes.size() / 2);
  EXPECT_TRUE(codec::Bf16().decode(bytes, values).ok());
  return values;
}

/// Asks for gradients as they are computed, and delivers values as bf16 or fp32.
struct Bf16Io final : StepIo {
  explicit Bf16Io(const ModelShape& shape) {
    wanted.slices = slices_of(shape);
    wanted.bf16_as_is = true;
    for (const GradientEncoding::Slice& slice : wanted.slices) missing.push_back(slice.count);
  }
  bool wait_for(std::uint64_t, std::uint64_t) override { return true; }
  void gradient_ready(std::uint64_t, std::uint64_t) override { FAIL() << "it was to leave as it is made"; }
  const GradientEncoding* gradient_encoding() override { return &wanted; }
  void encoded_gradient_ready(std::uint64_t first, std::uint64_t last) override {
    for (std::size_t s = 0; s < missing.size(); ++s) {
      const auto& [begin, count, bits] = wanted.slices[s];
      const std::uint64_t from = std::max(first, begin);
      const std::uint64_t to = std::min(last, begin + count);
      if (from >= to || (missing[s] -= to - from) > 0) continue;
      // The slice would be sent at this moment.
      const std::span<const float> place = std::span(out).subspan(begin, count);
      const Values read = bits == bf16 ? widened(std::as_bytes(place).first(2 * count)) : Values(place.begin(), place.end());
      std::copy(read.begin(), read.end(), sent.begin() + static_cast<std::ptrdiff_t>(begin));
    }
  }
  bool take(std::uint64_t first, std::uint64_t last, const std::function<void(const IncomingValues&)>& each) override {
    if (!rounded) return false;
    for (std::size_t s = 0; s < wanted.slices.size(); ++s) {
      const auto& [begin, count, bits] = wanted.slices[s];
      if (begin >= last || begin + count <= first || delivered[begin].size() > 0) continue;
      const bool as_bf16 = bits == bf16 && rounded(s);
      const std::span<const float> place = std::span(values).subspan(begin, count);
      delivered[begin] = as_bf16 ? sent_as_bf16(place) : codec::Bytes(std::as_bytes(place).begin(), std::as_bytes(place).end());
      each({begin, count, as_bf16 ? bf16 : fp32, delivered[begin], as_bf16});
    }
    return true;
  }

  GradientEncoding wanted;
  std::vector<std::uint64_t> missing;
  Values values, out, sent;
  std::function<bool(std::size_t)> rounded;  // slices that are received as bf16; none: the values are in the caller's buffer
  std::map<std::uint64_t, codec::Bytes> delivered;
};

struct Where {
  std::string name;
  bool gpu;
};

class DeviceBf16 : public testing::TestWithParam<std::tuple<Example, Where>> {
 protected:
  void SetUp() override {
    const Example& example = std::get<0>(GetParam());
    gpu = std::get<1>(GetParam()).gpu;
    if (gpu && gpus() == 0) GTEST_SKIP() << "there is no GPU that torch can use";
    use_threads(1);
    ModelSpec spec = example.spec;
    spec.precision = "bf16";
    for (auto* learner : {&floats, &bf16_transfer}) {
      const auto data = example.data();
      auto made = gpu ? make_learner(spec, data, {.cuda = true, .index = 0}) : make_device_learner(spec, data);
      ASSERT_TRUE(made.ok()) << made.error().message;
      *learner = std::move(*made);
    }
  }
  /// A step with slices received as `rounded` says, compared with the same step with fp32 values.
  void expect_the_same(const Values& values, std::uint32_t first, std::function<bool(std::size_t)> rounded) {
    Bf16Io io(bf16_transfer->shape());
    io.values = values;
    io.rounded = std::move(rounded);
    io.out.resize(values.size());
    io.sent.resize(values.size());
    const Values nothing(values.size(), 1e30F);  // must not be read
    const Step expected = step(*floats, values, samples_from(first, 8));
    const StepResult got = bf16_transfer->gradient(io.rounded ? nothing : values, samples_from(first, 8), io.out, io);
    EXPECT_TRUE(got.encoded);
    EXPECT_EQ(got.residual, 0);
    EXPECT_EQ(std::count(io.missing.begin(), io.missing.end(), 0U), static_cast<std::ptrdiff_t>(io.missing.size()));
    double squares = 0;
    for (std::size_t i = 0; i < bf16_transfer->shape().parameters; ++i) squares += std::pow(static_cast<double>(io.sent[i]), 2);
    EXPECT_NEAR(got.squared_norm, squares, 1e-4 * squares);
    if (gpu) {
      EXPECT_NEAR(got.loss_sum, expected.result.loss_sum, 1e-3 * expected.result.loss_sum);
      expect_close(io.sent, expected.gradient, 0.02);
    } else {
      EXPECT_EQ(got.loss_sum, expected.result.loss_sum);
      EXPECT_EQ(io.sent, expected.gradient);
    }
  }
  bool gpu = false;
  std::unique_ptr<Learner> floats, bf16_transfer;
};
INSTANTIATE_TEST_SUITE_P(Each, DeviceBf16,
                         testing::Combine(testing::ValuesIn(models), testing::Values(Where{"Cpu", false}, Where{"Gpu", true})),
                         [](const auto& each) { return std::get<0>(each.param).name + "On" + std::get<1>(each.param).name; });

TEST_P(DeviceBf16, Gradients_are_sent_as_computed) {
  const Values values = initial(*floats);
  for (std::uint32_t step = 0; step < 3; ++step) expect_the_same(values, 8 * step, {});
}

TEST_P(DeviceBf16, Weights_received_as_bf16_equal_those_it_would_round) {
  const auto all = [](std::size_t) { return true; };
  const auto none = [](std::size_t) { return false; };
  const auto some = [](std::size_t slice) { return slice % 2 == 0; };
  const auto others = [](std::size_t slice) { return slice % 2 == 1; };
  std::uint64_t seed = 1;
  for (const std::function<bool(std::size_t)>& rounded :
       {std::function<bool(std::size_t)>(all), {all}, {none}, {some}, {others}, {none}, {}, {all}}) {
    const Values values = initial(*floats, seed++);
    expect_the_same(values, 8, rounded);
  }
}

TEST_P(DeviceBf16, Goes_back_to_fp32_weights_afterwards) {
  const Values values = initial(*floats);
  expect_the_same(values, 0, [](std::size_t) { return true; });
  const Values others = initial(*floats, 2);
  const Step a = step(*floats, others, samples_from(3, 8));
  const Step b = step(*bf16_transfer, others, samples_from(3, 8));
  expect_close(b.gradient, a.gradient, gpu ? 0.02 : 0);
  EXPECT_NEAR(b.result.squared_norm, a.result.squared_norm, (gpu ? 0.02 : 1e-9) * a.result.squared_norm);
  const StepResult c = floats->evaluate(others);
  const StepResult d = bf16_transfer->evaluate(others);
  EXPECT_NEAR(c.loss_sum, d.loss_sum, (gpu ? 0.02 : 1e-9) * c.loss_sum);
}

}  // namespace
}  // namespace motley::learn
