// Shares of devices that are best at multiples of so many samples.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/rng.h"
#include "policy/batching/batch_allocator.h"

namespace motley::policy {
namespace {

using Batches = std::vector<std::uint32_t>;

/// Shares of devices of these speeds and batch multiples.
Batches shares(std::uint32_t total, const std::vector<double>& speeds, const Batches& batch_multiples, const Batches& limits = {}) {
  BatchAllocator allocator;
  std::vector<WorkerProfile> all;
  std::vector<cluster::Affine> devices;
  for (std::uint32_t i = 0; i < speeds.size(); ++i) {
    all.push_back({.worker = {i}, .device = {.max_batch = limits.empty() ? 0 : limits[i], .batch_multiple = batch_multiples[i]}});
    devices.push_back({0.002, 1 / (250 * speeds[i])});
  }
  allocator.join(all);
  return allocator.shares(total, devices);
}

TEST(BatchMultiples, SharesAreMultiplesAndSumToTheGlobalBatch) {
  EXPECT_EQ(shares(1024, {40, 30, 20, 10}, {8, 8, 8, 8}), (Batches{416, 312, 200, 96}));
  Rng rng(3, "batch multiples");
  for (int round = 0; round < 200; ++round) {
    std::vector<double> speeds;
    for (int i = 0; i < 5; ++i) speeds.push_back(0.2 + rng.uniform());
    const Batches found = shares(800, speeds, {16, 8, 8, 16, 8});
    EXPECT_EQ(std::accumulate(found.begin(), found.end(), 0U), 800U);
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i] % 8, 0U);
      EXPECT_GE(found[i], 8U);
      const double fair = 800 * speeds[i] / std::accumulate(speeds.begin(), speeds.end(), 0.0);
      EXPECT_NEAR(found[i], fair, 25) << round;
    }
  }
}

/// When the last of them ends.
double end_of(const std::vector<cluster::Affine>& devices, const Batches& batches) {
  double last = 0;
  for (std::size_t i = 0; i < devices.size(); ++i) last = std::max(last, devices[i].at(batches[i]));
  return last;
}

TEST(BatchMultiples, NoOtherMultiplesEndSooner) {
  constexpr std::uint32_t total = 96, batch_multiple = 4;
  Rng rng(4, "batch multiples");
  for (int round = 0; round < 100; ++round) {
    BatchAllocator allocator;
    const cluster::DeviceProfile device{.batch_multiple = batch_multiple};
    allocator.join(std::vector<WorkerProfile>{{{0}, device}, {{1}, device}, {{2}, device}});
    std::vector<cluster::Affine> devices;
    for (int i = 0; i < 3; ++i) devices.push_back({0.01 * rng.uniform(), 0.0002 + 0.001 * rng.uniform()});
    double best = end_of(devices, {total, total, total});
    for (std::uint32_t a = batch_multiple; a < total; a += batch_multiple)
      for (std::uint32_t b = batch_multiple; a + b < total; b += batch_multiple)
        best = std::min(best, end_of(devices, {a, b, total - a - b}));
    EXPECT_LE(end_of(devices, allocator.shares(total, devices)), 1.0001 * best) << round;
  }
}

TEST(BatchMultiples, WorkersWithoutAMultipleTakeTheRemainder) {
  const Batches found = shares(1000, {40, 1, 1}, {64, 1, 1});
  EXPECT_EQ(found[0], 960U) << "896 would leave them 104, for twice as long";
  EXPECT_EQ(found[0] + found[1] + found[2], 1000U);
  EXPECT_NEAR(found[1], found[2], 1);
}

TEST(BatchMultiples, GiveWayToMemoryAndToSmallBatches) {
  const Batches tight = shares(100, {1, 1}, {64, 64}, {40, 80});
  EXPECT_EQ(tight[0] + tight[1], 100U);
  EXPECT_LE(tight[0], 40U);
  EXPECT_LE(tight[1], 80U);
  const Batches full = shares(57, {1, 1, 1}, {8, 8, 8}, {20, 20, 20});
  EXPECT_EQ(std::accumulate(full.begin(), full.end(), 0U), 57U) << "limits that are no multiples";
  EXPECT_LE(*std::max_element(full.begin(), full.end()), 20U);
  const Batches small = shares(10, {3, 1}, {8, 8});
  EXPECT_EQ(small[0] + small[1], 10U);
  EXPECT_GE(small[1], 1U);
}

}  // namespace
}  // namespace motley::policy
