// Recordings that are damaged, or made up by somebody who knows the format: replay ends with an answer, whatever they hold.
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/mutations_for_tests.h"
#include "protocol/chief_driver_for_tests.h"
#include "runtime/inputs.h"

namespace motley::runtime {
namespace {

using protocol::ChiefDriver;
using protocol::ChiefEvent;

constexpr std::uint32_t batch = 12;

protocol::ChiefOptions options() {
  return {.epoch_samples = 60, .total_samples = 600, .evaluate_every = 60, .max_time = {}, .quorum = 2, .checkpoint_every = 3};
}

/// Records of a training of two workers, each with its frame, if it has one, behind the head.
std::vector<std::string> recorded(const std::string& strategy) {
  ChiefDriver driver(options(), {.kind = strategy, .knobs = {}, .batches = {}}, batch);
  std::vector<std::string> records;
  Recorder recorder(
      [&](std::span<const std::byte> record) { records.emplace_back(reinterpret_cast<const char*>(record.data()), record.size()); });
  const auto step = [&](const ChiefEvent& event) {
    driver.now += from_seconds(0.25);
    driver.step(event);
    recorder.stepped(driver.now, event, driver.last);
  };
  step(protocol::Received{protocol::pending_worker(0), wire::Hello{.node = "a", .attempt = 1, .node_index = 0}});
  step(protocol::Received{protocol::pending_worker(1), wire::Hello{.node = "b", .attempt = 1, .node_index = 1}});
  for (int round = 0; round < 8; ++round) {
    const auto orders = driver.orders;
    for (const auto& [worker, order] : orders) {
      driver.orders.erase(worker);
      const auto samples = static_cast<std::uint32_t>(order.lease.size());
      step(protocol::Received{protocol::peer(worker), wire::Contributed{.worker = worker,
                                                                        .step = order.step,
                                                                        .base = order.version,
                                                                        .report = {.samples = samples,
                                                                                   .local_steps = order.local_steps,
                                                                                   .loss_sum = 3.5,
                                                                                   .squared_norm = 2,
                                                                                   .compute = from_seconds(0.1)}}});
      step(protocol::Received{protocol::peer(ServerId{0}), wire::Gathered{ServerId{0}, worker, order.step}});
    }
    step(protocol::Tick{});
    if (round == 5) step(protocol::Lost{WorkerId{1}});
  }
  step(protocol::Interrupted{});
  recorder.closed(driver.now);
  return records;
}

constexpr std::size_t frame_at = 14, answers = 8, crc = 4;

/// Bytes of the body change and the checksum is made to fit: the message itself is another one.
void change_message(std::string& record, Rng& rng) {
  if (record[0] != 0 || record.size() < frame_at + 12 + crc + answers + 1) return;
  const std::size_t begin = frame_at + 12, end = record.size() - answers - crc;
  for (std::uint64_t n = 1 + rng.below(3); n > 0; --n) {
    const std::size_t at = begin + rng.below(end - begin), length = std::min<std::size_t>(1 + rng.below(8), end - at);
    const std::uint64_t value = rng.below(2) == 0 ? rng.bits() : 0ULL - rng.below(2);
    std::memcpy(record.data() + at, &value, length);
  }
  const auto sum = static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const unsigned char*>(record.data() + frame_at), end - frame_at));
  std::memcpy(record.data() + end, &sum, sizeof sum);
}

class InputMutations : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Strategies, InputMutations, testing::Values("bsp", "hps", "adaptive", "multistep"),
                         [](const auto& strategy) { return std::string(strategy.param); });

TEST_P(InputMutations, EndInAnAnswer) {
  const std::vector<std::string> records = recorded(GetParam());
  const std::uint64_t before = peak_bytes();
  for (std::uint64_t seed = 0; seed < mutations / 4; ++seed) {  // of four strategies
    SCOPED_TRACE(seed);
    Rng rng(seed, "recording", std::strlen(GetParam()));
    std::vector<std::string> all = records;
    for (std::uint64_t n = rng.below(4); n > 0; --n) change_message(all[rng.below(all.size())], rng);
    if (rng.below(3) == 0) std::swap(all[rng.below(all.size())], all[rng.below(all.size())]);
    if (rng.below(3) == 0) all.insert(all.begin() + static_cast<std::ptrdiff_t>(rng.below(all.size())), all[rng.below(all.size())]);
    if (rng.below(3) == 0) all.erase(all.begin() + static_cast<std::ptrdiff_t>(rng.below(all.size())));
    if (std::string& one = all[rng.below(all.size())]; rng.below(2) == 0 && one.size() > 14)
      one[1 + rng.below(13)] = static_cast<char>(rng.bits());
    std::string bytes;
    for (const std::string& record : all) bytes += record;
    if (rng.below(2) == 0) bytes = mutated(std::move(bytes), rng);
    protocol::Chief chief = ChiefDriver(options(), {.kind = GetParam(), .knobs = {}, .batches = {}}, batch).chief;
    const Replayed replayed = replay(std::as_bytes(std::span(bytes)), chief);
    ASSERT_LE(replayed.inputs, bytes.size() / 9);
    ASSERT_TRUE(!replayed.damaged || !replayed.torn.empty());
  }
  EXPECT_LT(peak_bytes() - before, most_growth);
}

}  // namespace
}  // namespace motley::runtime
