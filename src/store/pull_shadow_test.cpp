// Encoded parameters: a worker that applies every change holds the shadow bit for bit, and rounding errors do not accumulate.
#include "store/pull_shadow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "base/rng.h"

namespace motley::store {
namespace {

using Floats = std::vector<float>;

// Two servers share a large tensor; some slices need 8 bits, others and the statistics are sent as fp32.
const std::vector<TensorPlace> tensors{{0, 1500, TensorKind::parameter, 2},
                                       {1500, 300, TensorKind::parameter, 8},
                                       {1800, 20, TensorKind::parameter, 32},
                                       {1820, 30, TensorKind::statistic, 32}};
constexpr std::size_t values = 1850;

/// All servers' shadows of one class, and one member's values.
struct PullClass {
  Layout layout = cut(tensors, 400, 2);
  std::array<PullShadow, 2> shadows{PullShadow{layout, ServerId{0}}, PullShadow{layout, ServerId{1}}};

  void move_to(const Floats& target, std::uint8_t bits) {
    for (PullShadow& shadow : shadows) shadow.move_to(target, bits);
  }
  [[nodiscard]] Floats held() const {
    Floats flat(values);
    for (const PullShadow& shadow : shadows) shadow.values(flat);
    return flat;
  }
  void apply(Floats& member, std::uint8_t bits) const {
    for (std::uint32_t server = 0; server < 2; ++server)
      for (const SliceId id : layout.of(ServerId{server})) {
        const Slice& slice = layout[id];
        const std::span<float> part = std::span(member).subspan(slice.offset, slice.count);
        EXPECT_TRUE(apply_change(slice, bits, shadows[server].change(id), part, part).ok());
      }
  }
};

/// Changes parameters like training: small steps and an occasional large one.
void wander(Floats& target, Rng& rng) {
  const double step = rng.below(20) == 0 ? 1 : 0.01;
  for (float& x : target) x += static_cast<float>(step * rng.normal());
}

TEST(PullShadow, TheFirstMoveIsExactAndSendsOnlyFp32Slices) {
  Rng rng(1, "shadow");
  PullClass one;
  Floats target(values);
  wander(target, rng);
  one.move_to(target, 2);
  EXPECT_EQ(one.held(), target);
  for (std::uint32_t server = 0; server < 2; ++server)
    for (const SliceId id : one.layout.of(ServerId{server})) {
      const Slice& slice = one.layout[id];
      EXPECT_EQ(one.shadows[server].change(id).size(), slice.least_bits == 32 ? 4 * slice.count : 0);
    }
}

TEST(PullShadow, AMemberThatAppliesChangesHoldsTheSameBits) {
  for (const std::uint8_t bits : {2, 4, 8, 16, 32}) {
    Rng rng(bits, "shadow");
    PullClass one;
    Floats target(values);
    wander(target, rng);
    one.move_to(target, bits);
    Floats member = one.held();
    for (int i = 0; i < 100; ++i) {
      wander(target, rng);
      one.move_to(target, bits);
      one.apply(member, bits);
      ASSERT_EQ(member, one.held()) << "move " << i << " with " << int{bits} << " bits";
    }
  }
}

TEST(PullShadow, BitsCanChangeBetweenMoves) {
  Rng rng(5, "shadow");
  PullClass one;
  Floats target(values);
  one.move_to(target, 8);
  Floats member = one.held();
  for (const std::uint8_t bits : {8, 2, 16, 32, 4, 32, 8}) {
    wander(target, rng);
    one.move_to(target, bits);
    one.apply(member, bits);
    ASSERT_EQ(member, one.held());
    if (bits == 32) {
      EXPECT_EQ(member, target);
    }
  }
}

TEST(PullShadow, RoundingErrorsDoNotAccumulate) {
  for (const std::uint8_t bits : {2, 4, 8}) {
    Rng rng(bits, "wander");
    PullClass one;
    Floats target(values);
    one.move_to(target, bits);
    Floats before = one.held();
    for (int move = 0; move < 1000; ++move) {
      wander(target, rng);
      one.move_to(target, bits);
      const Floats after = one.held();
      for (const Slice& slice : one.layout.slices) {
        double largest = 0;  // of the wanted change
        for (std::size_t k = slice.offset; k < slice.offset + slice.count; ++k)
          largest = std::max(largest, std::abs(static_cast<double>(target[k]) - before[k]));
        const int levels = (1 << (slice.bits(bits) - 1)) - 1;
        const double bound = slice.least_bits == 32 ? 0 : largest / (2.0 * levels) * 1.01 + 1e-5;
        for (std::size_t k = slice.offset; k < slice.offset + slice.count; ++k)
          ASSERT_LE(std::abs(static_cast<double>(target[k]) - after[k]), bound)
              << "value " << k << ", move " << move << ", " << int{bits} << " bits";
      }
      before = after;
    }
  }
}

TEST(PullShadow, ConvergesToAConstantTarget) {
  Rng rng(6, "shadow");
  PullClass one;
  one.move_to(Floats(values), 4);
  Floats target(values);
  wander(target, rng);
  for (int i = 0; i < 20; ++i) one.move_to(target, 4);
  const Floats held = one.held();
  for (std::size_t k = 0; k < values; ++k) ASSERT_NEAR(held[k], target[k], 1e-6);
}

TEST(PullShadow, Fp32SlicesAreExactWithAnyBits) {
  Rng rng(7, "shadow");
  PullClass one;
  Floats target(values);
  one.move_to(target, 2);
  Floats member = one.held();
  for (int i = 0; i < 20; ++i) {
    wander(target, rng);
    one.move_to(target, 2);
    one.apply(member, 2);
    ASSERT_EQ(Floats(member.begin() + 1800, member.end()), Floats(target.begin() + 1800, target.end()));
  }
}

TEST(PullShadow, RefusesAChangeOfTheWrongSize) {
  for (const std::uint8_t bits : {4, 32}) {
    PullClass one;
    Floats target(values);
    one.move_to(target, bits);
    target[0] = 1;
    one.move_to(target, bits);
    codec::Bytes bytes = one.shadows[0].change(SliceId{0});
    bytes.push_back({});
    Floats part(one.layout[SliceId{0}].count, 7);
    const Outcome longer = apply_change(one.layout[SliceId{0}], bits, bytes, part, part);
    ASSERT_FALSE(longer.ok());
    EXPECT_EQ(longer.error().next, Next::drop_peer);
    bytes.resize(bytes.size() - 2);
    EXPECT_FALSE(apply_change(one.layout[SliceId{0}], bits, bytes, part, part).ok());
    EXPECT_EQ(part, Floats(part.size(), 7));
  }
}

TEST(PullShadow, RejectsATargetOfTheWrongSizeAndEarlyValues) {
  PullClass one;
  Floats flat(values);
  EXPECT_THROW(one.shadows[0].values(flat), Bug);
  EXPECT_THROW(one.shadows[0].move_to(Floats(values - 1), 8), Bug);
  one.move_to(flat, 8);
  EXPECT_THROW(one.shadows[0].values(std::span(flat).first(3)), Bug);
}

TEST(PullShadow, AnyNumberOfThreadsGivesTheSameChanges) {
  Rng rng(9, "threads");
  const Layout layout = cut(tensors, 100, 1);
  PullShadow alone(layout, ServerId{0});
  Floats target(values);
  std::array<PullShadow, 3> others{PullShadow{layout, ServerId{0}, std::make_shared<ThreadPool>(2)},
                                   PullShadow{layout, ServerId{0}, std::make_shared<ThreadPool>(3)},
                                   PullShadow{layout, ServerId{0}, std::make_shared<ThreadPool>(4)}};
  for (int i = 0; i < 20; ++i) {
    wander(target, rng);
    const std::uint8_t bits = i % 2 == 0 ? 2 : 4;
    alone.move_to(target, bits);
    Floats held(values), same(values);
    alone.values(held);
    for (PullShadow& other : others) {
      other.move_to(target, bits);
      other.values(same);
      ASSERT_EQ(same, held);
      for (const SliceId id : layout.of(ServerId{0})) ASSERT_EQ(other.change(id), alone.change(id)) << "slice " << id.value;
    }
  }
}

}  // namespace
}  // namespace motley::store
