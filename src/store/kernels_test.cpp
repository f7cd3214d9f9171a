// Every loop on every instruction set against a scalar reference with the same float operations in the same order: the bits must be equal
// for every length and number of parts.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <ostream>

#include "base/rng.h"
#include "store/floats.h"
#include "store/kernels.h"

namespace motley {

std::ostream& operator<<(std::ostream& out, Target target) {
  constexpr const char* names[] = {"plain", "avx2", "avx512"};
  return out << names[static_cast<int>(target)];
}

namespace store {
namespace {

using Anywhere = std::vector<float>;  // at any alignment

Anywhere normals(Rng& rng, std::size_t n, double size = 1) {
  Anywhere out(n);
  for (float& x : out) x = static_cast<float>(size * rng.normal());
  return out;
}

// The reference --------------------------------------------------------------------------------------------------------------------------

float sum_at(const Sum& sum, std::size_t i, float w) {
  float total = 0;
  for (std::size_t k = 0; k < sum.count; ++k) {
    const Addend& part = sum.addends[k];
    float g = part.values[i];
    if (sum.compensation > 0 && part.base != nullptr)
      g += std::clamp(sum.compensation * g * g * (w - part.base[i]), -std::abs(g), std::abs(g));
    total = k == 0 && sum.compensation <= 0 ? part.weight * g : total + part.weight * g;
  }
  return total;
}

float direction(const AdamConstants& c, float m, float u) { return m * c.unbias1 / (std::sqrt(u * c.unbias2) + c.epsilon); }

/// The arrays that the loops write.
struct State {
  Anywhere w, first, second;
  [[nodiscard]] std::vector<std::uint32_t> bits() const {
    std::vector<std::uint32_t> all;
    for (const Anywhere* floats : {&w, &first, &second})
      for (const float x : *floats) all.push_back(std::bit_cast<std::uint32_t>(x));
    return all;
  }
};

/// One loop of a table, and its reference for one value.
struct Loop {
  const char* name;
  void (*fast)(const Kernels&, const Sum&, std::size_t n, State&);
  void (*slow)(float g, float& w, float& first, float& second);
};

std::ostream& operator<<(std::ostream& out, const Loop& loop) { return out << loop.name; }

constexpr SgdConstants sgd{.rate = 0.1F, .mu = 0.9F, .decay = 5e-4F};
constexpr AdamConstants adam{.beta1 = 0.9F,
                             .beta2 = 0.999F,
                             .from_gradient1 = 0.1F,
                             .from_gradient2 = 0.001F,
                             .unbias1 = 1.7F,
                             .unbias2 = 300.0F,
                             .epsilon = 1e-8F,
                             .decay = 0.01F};

/// Out of place. The outputs have any alignment; those of w' and v' differ by `apart` values.
template <bool non_temporal, std::size_t apart>
void update_and_look_ahead(const Kernels& k, const Sum& g, std::size_t n, State& s) {
  if (g.compensation > 0) {  // not supported by this loop
    k.sgd(g, sgd, n, s.w.data(), s.first.data());
    return k.sgd_look_ahead(0.5F, n, s.w.data(), s.first.data(), s.second.data());
  }
  constexpr float untouched = 17;
  const std::size_t begins = (n * 5) % 16;
  Floats w(begins + n + 1, untouched), v(begins + apart + n + 1, untouched);
  k.sgd_update_and_look_ahead(g, sgd, 0.5F, non_temporal, n, s.w.data(), s.first.data(), &w[begins], &v[begins + apart], s.second.data());
  std::copy_n(&w[begins], n, s.w.data());
  std::copy_n(&v[begins + apart], n, s.first.data());
  EXPECT_EQ(std::count(w.begin(), w.end(), untouched), begins + 1) << "beside what it was to write";
  EXPECT_EQ(std::count(v.begin(), v.end(), untouched), begins + apart + 1) << "beside what it was to write";
}
void update_and_look_ahead_slow(float g, float& w, float& v, float& out) {
  v = sgd.mu * v + (g + sgd.decay * w);
  w -= sgd.rate * v;
  out = w - 0.5F * v;
}

const Loop loops[] = {
    {"add", [](const Kernels& k, const Sum& g, std::size_t n, State& s) { k.add(g, n, s.w.data()); },
     [](float g, float& w, float&, float&) { w += g; }},
    {"sgd", [](const Kernels& k, const Sum& g, std::size_t n, State& s) { k.sgd(g, sgd, n, s.w.data(), s.first.data()); },
     [](float g, float& w, float& v, float&) {
       v = sgd.mu * v + (g + sgd.decay * w);
       w -= sgd.rate * v;
     }},
    {"sgd_onward", update_and_look_ahead<false, 0>, update_and_look_ahead_slow},
    {"sgd_onward_far", update_and_look_ahead<true, 0>, update_and_look_ahead_slow},
    {"sgd_onward_far_and_apart", update_and_look_ahead<true, 3>, update_and_look_ahead_slow},
    {"sgd_apart", [](const Kernels& k, const Sum& g, std::size_t n, State& s) { k.sgd_bypass(g, 0.7F, 0.01F, n, s.w.data()); },
     [](float g, float& w, float&, float&) { w -= 0.7F * g + 0.01F * w; }},
    {"adamw",
     [](const Kernels& k, const Sum& g, std::size_t n, State& s) {
       k.adamw(g, adam, 0.03F, n, s.w.data(), s.first.data(), s.second.data());
     },
     [](float g, float& w, float& m, float& u) {
       m = adam.beta1 * m + adam.from_gradient1 * g;
       u = adam.beta2 * u + adam.from_gradient2 * (g * g);
       w -= 0.03F * (direction(adam, m, u) + adam.decay * w);
     }},
    {"adam_apart",
     [](const Kernels& k, const Sum& g, std::size_t n, State& s) { k.adam_bypass(g, adam, 0.03F, 0.01F, n, s.w.data(), s.second.data()); },
     [](float g, float& w, float&, float& u) { w -= 0.03F * (g / (std::sqrt(u * adam.unbias2) + adam.epsilon)) + 0.01F * w; }},
    {"sgd_ahead",
     [](const Kernels& k, const Sum&, std::size_t n, State& s) { k.sgd_look_ahead(0.5F, n, s.w.data(), s.first.data(), s.w.data()); },
     [](float, float& w, float& v, float&) { w = w - 0.5F * v; }},
    {"adam_ahead",
     [](const Kernels& k, const Sum&, std::size_t n, State& s) {
       k.adam_look_ahead(adam, 0.5F, n, s.w.data(), s.first.data(), s.second.data(), s.w.data());
     },
     [](float, float& w, float& m, float& u) { w = w - 0.5F * direction(adam, m, u); }},
};

// The law --------------------------------------------------------------------------------------------------------------------------------

class KernelLaw : public testing::TestWithParam<std::tuple<Target, Loop>> {
 protected:
  void SetUp() override {
    if (target > widest_target()) GTEST_SKIP() << "this processor has no " << target;
  }

  /// Sums `parts` parts over n values at any alignment: every second part has a base, parts 1, 4, 7, ... are bf16.
  void expect_same_bits(std::size_t n, std::size_t parts, float compensation) {
    const std::size_t skipped = rng.below(20);
    std::vector<Anywhere> flats, stash;
    std::vector<Addend> addends;
    for (std::size_t k = 0; k < parts; ++k) {
      flats.push_back(normals(rng, skipped + n, k % 3 == 2 ? 1e-42 : 1));  // some of them denormal
      stash.push_back(normals(rng, skipped + n));
    }
    for (std::size_t k = 0; k < parts; ++k)
      addends.push_back({flats[k].data() + skipped, static_cast<float>(rng.uniform()), k % 2 == 0 ? stash[k].data() + skipped : nullptr});
    std::vector<Addend> twins = addends;
    std::vector<std::vector<std::uint16_t>> upper(parts);
    const Anywhere poison(skipped + n, std::numeric_limits<float>::quiet_NaN());
    for (std::size_t k = 1; k < parts; k += 3) {
      for (float& each : flats[k]) {
        upper[k].push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(each) >> 16U));
        each = std::bit_cast<float>(std::uint32_t{upper[k].back()} << 16U);
      }
      addends[k].values = poison.data() + skipped;
      addends[k].bf16_values = upper[k].data() + skipped;
    }
    const Sum sum{addends.data(), addends.size(), compensation};
    const Sum twin{twins.data(), twins.size(), compensation};

    State fast{normals(rng, n + 1), normals(rng, n + 1), normals(rng, n + 1)};
    for (float& u : fast.second) u = std::abs(u);
    State slow = fast;
    loop.fast(kernels_for(target), sum, n, fast);
    for (std::size_t i = 0; i < n; ++i) loop.slow(sum_at(twin, i, slow.w[i]), slow.w[i], slow.first[i], slow.second[i]);
    ASSERT_EQ(fast.bits(), slow.bits()) << n << " values, " << parts << " parts, compensation "
                                        << compensation;  // including the value after the last
  }

  Target target = std::get<0>(GetParam());
  Loop loop = std::get<1>(GetParam());
  Rng rng{1, "kernels"};
};

TEST_P(KernelLaw, EqualsTheReferenceForEveryLength) {
  for (std::size_t n = 0; n < 200; ++n) expect_same_bits(n, 1 + n % 3, 0);
}

TEST_P(KernelLaw, EqualsTheReferenceForManyParts) {
  for (const std::size_t parts : {1, 2, 3, 4, 5, 16, 33}) expect_same_bits(1003, parts, 0);
}

TEST_P(KernelLaw, EqualsTheReferenceWithCompensation) {
  for (const std::size_t parts : {1, 2, 5})
    for (const float lambda : {0.04F, 1.0F, 30.0F}) expect_same_bits(517, parts, lambda);  // 30: mostly clipped
}

INSTANTIATE_TEST_SUITE_P(Targets, KernelLaw,
                         testing::Combine(testing::Values(Target::plain, Target::avx2, Target::avx512), testing::ValuesIn(loops)));

TEST(Kernels, ASumOfOnePartWithWeightOneIsThePart) {
  const Anywhere g{-0.0F, 0.0F, 1e-45F, -3e38F, 1.0F / 3};
  const Addend whole{g.data(), 1.0F, nullptr};
  for (const Target target : {Target::plain, Target::avx2, Target::avx512}) {
    if (target > widest_target()) continue;
    Anywhere w(g.size(), -0.0F);
    kernels_for(target).add({&whole, 1}, w.size(), w.data());
    for (std::size_t i = 0; i < g.size(); ++i)
      EXPECT_EQ(std::bit_cast<std::uint32_t>(w[i]), std::bit_cast<std::uint32_t>(g[i])) << target << ", value " << i;
  }
}

}  // namespace
}  // namespace store
}  // namespace motley
