// bf16 in a server: bf16 contributions count as their values in fp32, and bf16 snapshots are the fp32 ones rounded.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/rng.h"
#include "codec/bf16.h"
#include "store/shard_store.h"

namespace motley::store {
namespace {

using Floats = std::vector<float>;

// A tensor of several slices, each of several pieces, one tensor that needs fp32, another that does not, and statistics, which do.
constexpr std::size_t large = 300'001, slice_values = 140'000;
const std::vector<TensorPlace> tensors{{0, large, TensorKind::parameter},
                                       {large, 77, TensorKind::parameter, 32},
                                       {large + 77, 500, TensorKind::parameter},
                                       {large + 577, 21, TensorKind::statistic, 32}};
constexpr std::size_t values = large + 598;
constexpr double rho = 0.9;
constexpr std::uint8_t half = 16;

bool sent_in_bf16(const Slice& slice) { return slice.bits(half) == half; }

/// A contribution as received, with its slices in bf16 where they allow it; its values are rounded first.
struct InBf16 {
  InBf16(const Layout& layout, Floats& flat) : bytes(flat), bf16_transfer(layout.slices.size()) {
    const codec::Bf16 codec;
    for (std::size_t s = 0; s < layout.slices.size(); ++s) {
      const Slice& slice = layout.slices[s];
      if (!sent_in_bf16(slice)) continue;
      bf16_transfer[s] = true;
      const std::span<float> place = std::span(flat).subspan(slice.offset, slice.count);
      codec::Bytes coded;
      codec.encode(place, coded);
      EXPECT_TRUE(codec.decode(coded, place).ok());
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(slice.offset), slice.count, std::numeric_limits<float>::quiet_NaN());
      std::memcpy(bytes.data() + slice.offset, coded.data(), coded.size());
    }
  }
  [[nodiscard]] WeightedPart part(double weight, const PullId& base) const { return {bytes, weight, base, bf16_transfer}; }
  Floats bytes;  // the unused second half of a bf16 slice holds NaN
  std::vector<bool> bf16_transfer;
};

std::vector<std::uint32_t> bits_of(const Floats& floats) {
  std::vector<std::uint32_t> bits;
  for (const float each : floats) bits.push_back(std::bit_cast<std::uint32_t>(each));
  return bits;
}

class Bf16Transfer : public testing::TestWithParam<std::tuple<OptimizerKind, std::uint32_t>> {
 protected:
  Floats normals() {
    Floats out(values);
    for (float& x : out) x = static_cast<float>(rng.normal());
    return out;
  }
  [[nodiscard]] ShardStore server(std::uint32_t which) const { return {layout, ServerId{which}, spec, initial}; }
  /// The values of a slice of `out` in fp32.
  [[nodiscard]] Floats read(const Floats& out) const {
    Floats read = out;
    const codec::Bf16 codec;
    for (const Slice& slice : layout.slices) {
      if (!sent_in_bf16(slice)) continue;
      const auto bytes = std::as_bytes(std::span(out).subspan(slice.offset, slice.count)).first(2 * slice.count);
      EXPECT_TRUE(codec.decode(bytes, std::span(read).subspan(slice.offset, slice.count)).ok());
    }
    return read;
  }
  [[nodiscard]] Floats rounded(Floats flat) const {
    const InBf16 rounds(layout, flat);
    return flat;
  }

  Rng rng{1, "halves"};
  OptimizerSpec spec{.kind = std::get<0>(GetParam()), .weight_decay = 1e-3};
  std::uint32_t servers = std::get<1>(GetParam());
  Layout layout = cut(tensors, slice_values, servers);
  Floats initial = normals();
};
INSTANTIATE_TEST_SUITE_P(Each, Bf16Transfer,
                         testing::Combine(testing::Values(OptimizerKind::sgd, OptimizerKind::adamw), testing::Values(1U, 2U)));

TEST_P(Bf16Transfer, ContributionsCountLikeTheirFp32Values) {
  for (std::uint32_t which = 0; which < servers; ++which) {
    ShardStore with = server(which);
    ShardStore without = server(which);
    std::uint64_t step = 0;
    for (const UpdateKind kind : {UpdateKind::gradient, UpdateKind::delta, UpdateKind::gradient, UpdateKind::bypass_momentum}) {
      for (const double compensation : {0.0, 0.5}) {
        Floats a = normals(), b = normals();
        const InBf16 coded(layout, a);
        const PullId base{{7}, {step}};
        with.keep(base, rho);
        without.keep(base, rho);
        const Update update{kind, 0.1, 0.9, 1, kind == UpdateKind::delta ? 0 : compensation};
        EXPECT_EQ(with.alignment(coded.part(1, base)), without.alignment(a));
        with.apply(update, std::vector<WeightedPart>{coded.part(0.25, base), {b, 0.75, base}});
        without.apply(update, std::vector<WeightedPart>{{a, 0.25, base}, {b, 0.75, base}});
        Floats one(values), other(values);
        with.values(one);
        without.values(other);
        ASSERT_TRUE(bits_of(one) == bits_of(other)) << "update " << step;
        ++step;
      }
    }
  }
}

TEST_P(Bf16Transfer, SnapshotsAreTheFp32OnesRounded) {
  for (std::uint32_t which = 0; which < servers; ++which) {
    ShardStore store = server(which);
    ShardStore on_slices_done = server(which);
    ShardStore speculating = server(which);
    for (std::uint64_t version = 1; version < 4; ++version) {
      Floats a = normals();
      const InBf16 coded(layout, a);
      const std::vector<WeightedPart> parts{coded.part(1, {})};
      const Update update{UpdateKind::gradient, 0.1, 0.9};
      store.apply(update, parts);
      Floats plain(values), sent_as_bf16(values), while_applied(values), speculated(values);
      store.snapshot(rho, plain);
      store.snapshot({rho, /*bf16_transfer=*/true}, sent_as_bf16);
      on_slices_done.apply(update, parts, {rho, true}, while_applied, [](std::span<const SliceId>) {});
      speculating.begin_speculation(update, {rho, true}, speculated);
      const std::vector<SliceId> own = layout.of(ServerId{which});
      if (version != 2) speculating.speculate(parts, std::span(own).first(own.size() / 2));
      speculating.commit(parts);
      const auto expected = bits_of(rounded(plain));
      EXPECT_TRUE(bits_of(read(sent_as_bf16)) == expected) << version;
      EXPECT_TRUE(bits_of(read(while_applied)) == expected) << version;
      EXPECT_TRUE(bits_of(read(speculated)) == expected) << version;
    }
  }
}

}  // namespace
}  // namespace motley::store
