// A learner that computes in bf16: gradients of its weights are numbers of 16 bits and leave as such, weights come rounded to as many, and
// neither changes anything. Everywhere on the CPU, to the bit; where there is a GPU, on that too, as near as it is to itself.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "codec/bf16.h"
#include "learn/torch/learners.h"
#include "learn/torch/test_models.h"

namespace motley::learn {
namespace {

constexpr std::uint64_t most = 700;  // values of a slice
constexpr std::uint8_t half = 16, plain = 32;

/// Every tensor in slices; the weights in 16 bits.
std::vector<GradientEncoding::Slice> slices_of(const ModelShape& shape) {
  std::vector<GradientEncoding::Slice> slices;
  for (const Tensor& tensor : shape.tensors)
    for (std::uint64_t done = 0; done < tensor.count; done += most)
      slices.push_back({tensor.offset + done, std::min(most, tensor.count - done),
                        tensor.kind == TensorKind::parameter && tensor.shape.size() >= 2 ? half : plain});
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

/// Wants gradients as they are made, and brings values as it is told to.
struct InBf16 final : StepIo {
  explicit InBf16(const ModelShape& shape) {
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
      // It would be sent at this moment.
      const std::span<const float> place = std::span(out).subspan(begin, count);
      const Values read = bits == half ? widened(std::as_bytes(place).first(2 * count)) : Values(place.begin(), place.end());
      std::copy(read.begin(), read.end(), sent.begin() + static_cast<std::ptrdiff_t>(begin));
    }
  }
  bool take(std::uint64_t first, std::uint64_t last, const std::function<void(const IncomingValues&)>& each) override {
    if (!rounded) return false;
    for (std::size_t s = 0; s < wanted.slices.size(); ++s) {
      const auto& [begin, count, bits] = wanted.slices[s];
      if (begin >= last || begin + count <= first || brought[begin].size() > 0) continue;
      const bool as_bf16 = bits == half && rounded(s);
      const std::span<const float> place = std::span(values).subspan(begin, count);
      brought[begin] = as_bf16 ? sent_as_bf16(place) : codec::Bytes(std::as_bytes(place).begin(), std::as_bytes(place).end());
      each({begin, count, as_bf16 ? half : plain, brought[begin], as_bf16});
    }
    return true;
  }

  GradientEncoding wanted;
  std::vector<std::uint64_t> missing;
  Values values, out, sent;
  std::function<bool(std::size_t)> rounded;  // slices that come so; none: the values lie where they always do
  std::map<std::uint64_t, codec::Bytes> brought;
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
  /// A step with values that come as `rounded` says, beside the same with floats.
  void expect_the_same(const Values& values, std::uint32_t first, std::function<bool(std::size_t)> rounded) {
    InBf16 io(bf16_transfer->shape());
    io.values = values;
    io.rounded = std::move(rounded);
    io.out.resize(values.size());
    io.sent.resize(values.size());
    const Values nothing(values.size(), 1e30F);  // what lies there must not be read
    const Step expected = step(*floats, values, samples_from(first, 8));
    const StepResult got = bf16_transfer->gradient(io.rounded ? nothing : values, samples_from(first, 8), io.out, io);
    EXPECT_TRUE(got.coded);
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

TEST_P(DeviceBf16, GradientsLeaveAsTheyAreMade) {
  const Values values = initial(*floats);
  for (std::uint32_t step = 0; step < 3; ++step) expect_the_same(values, 8 * step, {});
}

TEST_P(DeviceBf16, WeightsThatComeRoundedAreThoseThatItWouldHaveRounded) {
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

TEST_P(DeviceBf16, AfterThemItStillDoesWithFloats) {
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
