// DeviceCodec compared with the codecs on the CPU: every byte, and every bit of the residual. On the CPU, and on a GPU where there is one.
#include "learn/torch/device_codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/rng.h"
#include "codec/codec.h"
#include "codec/error_feedback.h"
#include "learn/learner.h"
#include "learn/torch/learners.h"
#include "learn/torch/test_models.h"

namespace motley::learn {
namespace {

using Floats = std::vector<float>;

/// Numbers of all magnitudes in random order, some of them 0.
Floats numbers(std::size_t count, std::uint64_t seed) {
  Rng rng(seed, "numbers", 0);
  Floats made(count);
  for (float& each : made)
    each = rng.uniform() < 0.1 ? 0.0F : static_cast<float>((rng.uniform() - 0.5) * std::exp2(60 * rng.uniform() - 40));
  return made;
}

codec::Bytes on_cpu(const Floats& values, int bits) {
  codec::Bytes bytes;
  codec::make(bits).value()->encode(values, bytes);
  return bytes;
}

codec::Bytes held(const at::Tensor& bytes) {
  const at::Tensor here = bytes.contiguous().cpu();
  codec::Bytes out(static_cast<std::size_t>(here.numel()));
  std::memcpy(out.data(), here.data_ptr(), out.size());
  return out;
}

Floats floats(const at::Tensor& values) {
  const at::Tensor here = values.contiguous().cpu();
  return {here.data_ptr<float>(), here.data_ptr<float>() + here.numel()};
}

class DeviceCodecTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam() && gpus() == 0) GTEST_SKIP() << "there is no GPU that torch can use";
  }
  [[nodiscard]] at::Device device() const { return GetParam() ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU); }
  [[nodiscard]] at::Tensor there(Floats values) const {
    return at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, at::kFloat).clone().to(device());
  }
};
INSTANTIATE_TEST_SUITE_P(Each, DeviceCodecTest, testing::Bool(), [](const auto& each) { return each.param ? "OnGpu" : "OnCpu"; });

TEST_P(DeviceCodecTest, Encodes_the_bytes_of_the_CPU_codecs) {
  const DeviceCodec codec(device());
  for (const int bits : {2, 4, 8, 16, 32})
    for (const std::size_t count : {1U, 2U, 3U, 5U, 255U, 256U, 257U, 511U, 512U, 1000U, 70'001U}) {
      const Floats values = numbers(count, count);
      const codec::Bytes bytes = on_cpu(values, bits);
      const at::Tensor coded = codec.encode(there(values), bits);
      EXPECT_EQ(held(coded), bytes) << bits << " bits, " << count << " values";
      Floats back(count);
      ASSERT_TRUE(codec::make(bits).value()->decode(bytes, back).ok());
      EXPECT_EQ(floats(codec.decode(coded, bits, static_cast<std::int64_t>(count))), back) << bits << " bits, " << count << " values";
    }
}

TEST_P(DeviceCodecTest, Equals_the_CPU_at_the_smallest_and_largest_values) {
  const DeviceCodec codec(device());
  using Limits = std::numeric_limits<float>;
  const float smallest = Limits::denorm_min();
  const Floats odd{Limits::max(), -Limits::max(), smallest, -smallest, 3 * smallest, Limits::min(), -0.0F, 0.0F, 1.0F, -1.0F, 0.5F};
  Floats tiny(300, smallest);
  tiny[7] = 5 * smallest;
  for (const Floats& values : {odd, tiny, Floats(256, 0.0F), Floats(3, -0.0F)})
    for (const int bits : {2, 4, 8, 16, 32}) EXPECT_EQ(held(codec.encode(there(values), bits)), on_cpu(values, bits)) << bits << " bits";
}

TEST_P(DeviceCodecTest, A_value_that_is_not_finite_makes_its_block_NaN) {
  const DeviceCodec codec(device());
  Floats values = numbers(600, 3);
  values[300] = std::numeric_limits<float>::infinity();
  for (const int bits : {2, 4, 8}) EXPECT_EQ(held(codec.encode(there(values), bits)), on_cpu(values, bits)) << bits << " bits";
  values[301] = std::numeric_limits<float>::quiet_NaN();
  for (const int bits : {2, 4, 8, 16}) EXPECT_EQ(held(codec.encode(there(values), bits)), on_cpu(values, bits)) << bits << " bits";
}

TEST_P(DeviceCodecTest, Residual_equals_that_of_the_CPU) {
  const DeviceCodec codec(device());
  for (const int bits : {2, 4, 8, 16, 32}) {
    Floats kept_here(1000);
    at::Tensor kept_there = there(kept_here);
    at::Tensor sums = at::zeros({2}, at::TensorOptions(at::kDouble).device(device()));
    double wanted = 0;
    double lost = 0;
    for (std::uint64_t step = 0; step < 4; ++step) {
      Floats values = numbers(1000, step);
      if (step == 2) values[5] = std::numeric_limits<float>::infinity();  // leaves the residual unchanged
      codec::Bytes bytes;
      const codec::FeedbackNorms kept = codec::encode_with_feedback(*codec::make(bits).value(), values, kept_here, bytes);
      wanted += kept.squared_wanted;
      lost += kept.squared_residual;
      EXPECT_EQ(held(codec.encode_with_feedback(there(values), kept_there, bits, sums)), bytes) << bits << " bits, step " << step;
      EXPECT_EQ(floats(kept_there), kept_here) << bits << " bits, step " << step;
    }
    const at::Tensor recorded = sums.cpu();
    EXPECT_NEAR(recorded.data_ptr<double>()[0], wanted, 1e-9 * wanted);
    EXPECT_NEAR(recorded.data_ptr<double>()[1], lost, 1e-9 * lost);
  }
}

/// Asks for slices of about `most` values with 8, 4, 16 and 8 bits in turn.
class AskForEncoding final : public StepIo {
 public:
  AskForEncoding(const ModelShape& shape, std::uint64_t most) {
    const auto cut = [&](std::uint64_t first, std::uint64_t last) {
      for (; first < last; first += most)
        encoding_.slices.push_back({first, std::min(most, last - first), first >= shape.parameters ? std::uint8_t{32} : next_bits()});
    };
    cut(0, shape.parameters);
    cut(shape.parameters, shape.values());
    missing.resize(encoding_.slices.size());
    for (std::size_t s = 0; s < missing.size(); ++s) missing[s] = encoding_.slices[s].count;
  }
  bool wait_for(std::uint64_t, std::uint64_t) override { return true; }
  void gradient_ready(std::uint64_t, std::uint64_t) override { FAIL() << "the gradient was to be encoded"; }
  const GradientEncoding* gradient_encoding() override { return &encoding_; }
  /// A slice must be complete when all its values are announced: it would be sent at that moment.
  void encoded_gradient_ready(std::uint64_t first, std::uint64_t last) override {
    for (std::size_t s = 0; s < missing.size(); ++s) {
      const auto& [begin, count, bits] = encoding_.slices[s];
      const std::uint64_t from = std::max(first, begin);
      const std::uint64_t to = std::min(last, begin + count);
      if (from >= to) continue;
      missing[s] -= to - from;
      if (missing[s] > 0) continue;
      const auto* at = reinterpret_cast<const std::byte*>(out.data() + begin);
      sent[begin].assign(at, at + codec::make(bits).value()->encoded_bytes(count));
    }
  }
  GradientEncoding encoding_;
  Floats out;
  std::vector<std::uint64_t> missing;
  std::map<std::uint64_t, codec::Bytes> sent;  // by the slice's first value

 private:
  std::uint8_t next_bits() { return std::array<std::uint8_t, 4>{8, 4, 16, 8}[turn_++ % 4]; }
  std::size_t turn_ = 0;
};

TEST(EncodedOnTheDevice, Gradient_equals_that_encoded_on_the_CPU) {
  use_threads(1);
  for (const Example& example : models) {
    const auto data = example.data();
    const auto plain = std::move(make_device_learner(example.spec, data).value());
    const auto encoder = std::move(make_device_learner(example.spec, data).value());
    const Values values = initial(*plain);
    Floats residual(values.size());
    for (std::uint32_t step = 0; step < 3; ++step) {
      Floats gradient(values.size());
      plain->gradient(values, samples_from(8 * step, 8), gradient);
      AskForEncoding asking(plain->shape(), 700);
      asking.out.resize(values.size());
      if (step > 0) asking.encoding_.rescale = 0.7F;
      if (step > 0)
        for (float& each : residual) each *= 0.7F;
      const StepResult result = encoder->gradient(values, samples_from(8 * step, 8), asking.out, asking);
      EXPECT_TRUE(result.encoded);
      EXPECT_GT(result.residual, 0);
      for (const auto& [first, count, bits] : asking.encoding_.slices) {
        codec::Bytes bytes;
        codec::encode_with_feedback(*codec::make(bits).value(), std::span(gradient).subspan(first, count),
                                    std::span(residual).subspan(first, count), bytes);
        EXPECT_EQ(asking.sent[first], bytes) << example.name << ", step " << step << ", slice at " << first << ", " << int{bits} << " bits";
      }
    }
  }
}

/// Delivers encoded slices, each once.
class Deliveries final : public StepIo {
 public:
  bool wait_for(std::uint64_t, std::uint64_t) override { return true; }
  void gradient_ready(std::uint64_t, std::uint64_t) override {}
  bool take(std::uint64_t first, std::uint64_t last, const std::function<void(const IncomingValues&)>& each) override {
    for (Slice& slice : slices) {
      if (slice.taken || slice.first >= last || slice.first + slice.count <= first) continue;
      slice.taken = true;
      each({slice.first, slice.count, slice.bits, slice.bytes, slice.rounded});
    }
    return true;
  }
  struct Slice {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
    std::uint8_t bits = 32;
    codec::Bytes bytes;
    bool rounded = false;
    bool taken = false;
  };
  std::vector<Slice> slices;
};

TEST(EncodedOnTheDevice, Differences_give_the_values_decoded_on_the_CPU) {
  use_threads(1);
  for (const Example& example : models) {
    const auto data = example.data();
    const auto plain = std::move(make_device_learner(example.spec, data).value());
    const auto receiver = std::move(make_device_learner(example.spec, data).value());
    Values held = initial(*plain);
    const Values nothing(held.size(), 1e30F);  // must not be read
    for (std::uint32_t step = 0; step < 4; ++step) {
      Deliveries deliveries;
      for (std::uint64_t first = 0, turn = 0; first < held.size() && step != 2; first += 700, ++turn) {  // the third step receives nothing
        Deliveries::Slice slice{
            first, std::min<std::uint64_t>(700, held.size() - first), static_cast<std::uint8_t>(turn % 2 == 0 ? 8 : 4), {}};
        Floats change = numbers(slice.count, first + step);
        for (float& each : change) each = std::remainder(each, 1e-3F);
        if (step == 0) {
          slice.bits = 32;
          change.assign(held.begin() + static_cast<std::ptrdiff_t>(first), held.begin() + static_cast<std::ptrdiff_t>(first + slice.count));
        }
        slice.bytes = on_cpu(change, slice.bits);
        Floats decoded(slice.count);
        ASSERT_TRUE(codec::make(slice.bits).value()->decode(slice.bytes, decoded).ok());
        for (std::uint64_t i = 0; i < slice.count; ++i) held[first + i] = decoded[i] + (step == 0 ? 0 : held[first + i]);
        deliveries.slices.push_back(std::move(slice));
      }
      Floats expected(held.size());
      Floats got(held.size());
      plain->gradient(held, samples_from(8 * step, 8), expected);
      receiver->gradient(nothing, samples_from(8 * step, 8), got, deliveries);
      EXPECT_EQ(got, expected) << example.name << ", step " << step;
    }
  }
}

TEST(EncodedOnTheDevice, Delta_equals_that_encoded_on_the_CPU) {
  use_threads(1);
  const Example& example = models[0];
  const auto data = example.data();
  const auto plain = std::move(make_device_learner(example.spec, data).value());
  const auto encoder = std::move(make_device_learner(example.spec, data).value());
  const Values values = initial(*plain);
  Floats delta(values.size());
  AskForEncoding asking(plain->shape(), 300);
  asking.out.resize(values.size());
  for (Learner* each : {plain.get(), encoder.get()}) {
    each->local_sgd()->begin(values);
    each->local_sgd()->begin_round();
    each->local_sgd()->step(samples_from(0, 8), {0.01, 0.9, 0});
  }
  EXPECT_FALSE(plain->local_sgd()->delta(delta).encoded);
  EXPECT_TRUE(encoder->local_sgd()->delta(asking.out, asking.gradient_encoding()).encoded);
  asking.encoded_gradient_ready(0, values.size());
  for (const auto& [first, count, bits] : asking.encoding_.slices) {
    Floats residual(count);
    codec::Bytes bytes;
    codec::encode_with_feedback(*codec::make(bits).value(), std::span(delta).subspan(first, count), residual, bytes);
    EXPECT_EQ(asking.sent[first], bytes) << "slice at " << first << ", " << int{bits} << " bits";
  }
}

}  // namespace
}  // namespace motley::learn
