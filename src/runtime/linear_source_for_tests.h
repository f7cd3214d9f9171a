// For tests: a gradient source whose result is easily computed by hand. The loss pulls each value towards a target that depends on the
// sample; blocks of values are read in forward order and their gradients are ready in backward order, as in a network.
#pragma once
#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/gradient_source.h"
#include "codec/error_feedback.h"
#include "store/layout.h"

namespace motley::runtime {

/// Blocks a computation while a test has it closed. Open at first.
class Gate {
 public:
  void close() { set(false); }
  void open() { set(true); }
  void pass() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return open_; });
  }

 private:
  void set(bool open) {
    {
      const std::lock_guard lock(mutex_);
      open_ = open;
    }
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
};

inline constexpr std::uint64_t linear_values = 13, linear_parameters = 10;

/// Ten parameters in slices of 3, 3 and 4, and three statistics in one.
inline store::Layout linear_layout(std::uint32_t servers = 1) {
  const std::vector<store::TensorPlace> tensors{{0, linear_parameters, TensorKind::parameter},
                                                {linear_parameters, linear_values - linear_parameters, TensorKind::statistic}};
  return store::cut(tensors, 4, servers);
}

inline std::vector<float> linear_start() {
  std::vector<float> values(linear_values);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.1F * static_cast<float>(i) - 0.7F;
  return values;
}

/// Hooks of a computation, called on its thread.
struct LinearTurns {
  std::function<void()> before{};                                 // the computation begins
  std::function<void(std::uint64_t block, bool there)> needed{};  // after flow.wait_for()
  std::function<void(std::uint64_t block)> gradient_ready{};      // after flow.gradient_ready()
  std::function<void()> after{};
  std::optional<Duration> stalled{};                                                  // reported to io.stalled()
  std::function<void(std::span<const std::uint32_t> samples, StepIo& io)> turning{};  // all gradients are ready
};

class LinearSource final : public GradientSource {
 public:
  static constexpr std::uint64_t block_values = 4;
  explicit LinearSource(LinearTurns turns = {}) : turns_(std::move(turns)) {}

  void initialize(std::uint64_t, std::span<float> values) override {
    const std::vector<float> start = linear_start();
    std::copy(start.begin(), start.end(), values.begin());
  }

  StepResult gradient(std::span<const float> values, std::span<const std::uint32_t> samples, std::span<float> out, StepIo& io) override {
    if (turns_.before) turns_.before();
    const std::uint64_t blocks = (values.size() + block_values - 1) / block_values;
    StepResult loss;
    loss.samples = samples.size();
    for (std::uint64_t b = 0; b < blocks; ++b) {
      const auto [first, last] = place(b, values.size());
      const bool there = io.wait_for(first, last);
      if (turns_.needed) turns_.needed(b, there);
      if (!there) return {};
      for (std::uint64_t i = first; i < last; ++i)
        for (const std::uint32_t sample : samples) loss.loss_sum += 0.5 * square(values[i] - target(sample, i));
    }
    for (std::uint64_t b = blocks; b-- > 0;) {
      const auto [first, last] = place(b, values.size());
      for (std::uint64_t i = first; i < last; ++i) {
        float sum = 0;
        for (const std::uint32_t sample : samples) sum += values[i] - target(sample, i);
        const float mean = sum / static_cast<float>(samples.size());
        out[i] = i < linear_parameters ? mean : -mean;  // a statistic's change is added, not subtracted: it also moves to its target
      }
      io.gradient_ready(first, last);
      if (turns_.gradient_ready) turns_.gradient_ready(b);
    }
    if (turns_.stalled) io.stalled(*turns_.stalled);
    if (turns_.turning) turns_.turning(samples, io);
    if (turns_.after) turns_.after();
    return loss;
  }

  StepResult evaluate(std::span<const float>) override { return {}; }

 private:
  static std::pair<std::uint64_t, std::uint64_t> place(std::uint64_t block, std::uint64_t values) {
    return {block * block_values, std::min((block + 1) * block_values, values)};
  }
  static float target(std::uint32_t sample, std::uint64_t value) {
    return static_cast<float>((sample * 31 + value * 17) % 101) / 64.0F - 0.8F;
  }
  static double square(float x) { return static_cast<double>(x) * x; }

  LinearTurns turns_;
};

/// The same mathematics on a device with memory of its own: it keeps the values that it was given, takes changes as they come, codes its
/// gradients itself, and takes the values of the next step before it says that this one is done.
class LinearDevice final : public GradientSource {
 public:
  /// `bf16_transfer`: it computes in bf16, and its gradients are bf16.
  explicit LinearDevice(bool bf16_transfer = false) : bf16_transfer_(bf16_transfer) {}
  void initialize(std::uint64_t seed, std::span<float> values) override { source_.initialize(seed, values); }
  StepResult gradient(std::span<const float> values, std::span<const std::uint32_t> samples, std::span<float> out, StepIo& io) override {
    kept_.resize(values.size());
    if (io.id() == 0 || std::exchange(begun_, 0) != io.id())
      if (!take(values, io)) return {};
    NoStreaming no_streaming;
    if (bf16_transfer_) round(kept_);
    StepResult loss = source_.gradient(kept_, samples, out, no_streaming);
    if (bf16_transfer_) round(out);
    if (const std::optional<NextStep> next = io.next_step()) begun_ = take(next->values, *next->io) ? next->id : 0;
    if (const GradientEncoding* coding = io.gradient_encoding(); coding != nullptr) {
      loss.squared_norm = 0;
      for (const float each : out.first(linear_parameters)) loss.squared_norm += static_cast<double>(each) * each;
      code(*coding, out);
      loss.encoded = true;
      io.encoded_gradient_ready(0, out.size());
    } else {
      io.gradient_ready(0, out.size());
    }
    return loss;
  }
  StepResult evaluate(std::span<const float>) override { return {}; }

 private:
  bool take(std::span<const float> values, StepIo& io) {
    if (!io.wait_for(0, values.size())) return false;
    const auto take = [&](const IncomingValues& came) {
      std::vector<float> decoded(came.count);
      check(codec::make(came.bits).value()->decode(came.bytes, decoded).ok(), "what came is as long as it should be");
      const bool change = came.bits < 32 && !came.rounded;
      for (std::uint64_t i = 0; i < came.count; ++i) kept_[came.first + i] = decoded[i] + (change ? kept_[came.first + i] : 0);
    };
    if (!io.take(0, values.size(), take)) std::copy(values.begin(), values.end(), kept_.begin());
    return true;
  }
  static void round(std::span<float> values) {
    codec::Bytes bytes;
    codec::make(16).value()->encode(values, bytes);
    check(codec::make(16).value()->decode(bytes, values).ok(), "as many as there were");
  }
  void code(const GradientEncoding& coding, std::span<float> out) {
    check(bf16_transfer_ || !coding.bf16_as_is, "only a bf16 device is asked for bf16 gradients");
    if (coding.reset_residual || coding.bf16_as_is) residual_.clear();
    residual_.resize(out.size());
    for (float& each : residual_) each *= coding.rescale;
    for (const auto& [first, count, bits] : coding.slices) {
      codec::Bytes bytes;
      codec::encode_with_feedback(*codec::make(bits).value(), out.subspan(first, count), std::span(residual_).subspan(first, count), bytes);
      std::copy(bytes.begin(), bytes.end(), std::as_writable_bytes(out.subspan(first, count)).begin());
    }
  }
  LinearSource source_;
  bool bf16_transfer_;
  std::vector<float> kept_, residual_;
  std::uint64_t begun_ = 0;  // step whose values it has taken
};

}  // namespace motley::runtime
