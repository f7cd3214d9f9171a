// For tests: one server of two. The test plays the chief; workers are connections that record.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <cmath>
#include <cstring>

#include "runtime/fake_connection_for_tests.h"
#include "runtime/linear_source_for_tests.h"
#include "runtime/shard_host.h"
#include "transport/recording_callbacks_for_tests.h"

namespace motley::runtime {

using transport::run_ready;
using transport::run_until;

inline constexpr OptimizerSpec adamw{.kind = OptimizerKind::adamw, .weight_decay = 0.01};

/// Different for each worker and step.
inline std::vector<float> contribution(std::uint32_t worker, std::uint64_t step) {
  std::vector<float> values(linear_values);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i + 1) * 0.25F - static_cast<float>(worker) * 0.6F + static_cast<float>(step) * 0.07F;
  return values;
}

/// Different for each update, as during warm-up.
inline double rate_of(std::uint64_t version) { return 0.1 + 0.01 * static_cast<double>(version); }
inline store::Update by_hand(std::uint64_t version) { return {store::UpdateKind::gradient, rate_of(version), 0.9, 1}; }
inline wire::Apply update_of(std::uint64_t version, std::vector<wire::Part> parts) {
  return {.version = {version},
          .kind = wire::UpdateKind::gradient,
          .rate = rate_of(version),
          .momentum = 0.9,
          .share = 1,
          .parts = std::move(parts),
          .next_rate = rate_of(version + 1)};
}

class ShardHostTest : public testing::Test, private ShardOwner {
 protected:
  /// Server 0 of two: slices 0 and 3, say, are its own and the others are not.
  void make(const OptimizerSpec& optimizer = {}, const InitialState& initial_state = {linear_start(), std::nullopt, {}}) {
    host.emplace(io, server, layout, optimizer, initial_state, static_cast<ShardOwner&>(*this), 3);
    store.emplace(layout, server, optimizer, initial_state.values);
    if (initial_state.moments) store->restore(*initial_state.moments, initial_state.version);
  }

  // Actions of connections ---------------------------------------------------------------------------------------------------------------

  static wire::Push head(std::uint32_t worker, std::uint64_t step, SliceId slice, int bits = 32) {
    return {.worker = {worker}, .step = {step}, .slice = slice, .bits = static_cast<std::uint8_t>(bits)};
  }
  std::vector<std::byte> encoded(const std::vector<float>& flat, SliceId id, int bits) const {
    std::vector<std::byte> bytes;
    codec::make(bits).value()->encode(std::span(flat).subspan(layout[id].offset, layout[id].count), bytes);
    return bytes;
  }
  /// False: refused.
  bool push(FakeConnection& from, const wire::Push& what, std::span<const std::byte> payload) {
    const std::span<std::byte> room = host->receive_buffer(from, what, payload.size());
    if (room.size() != payload.size()) return false;
    std::memcpy(room.data(), payload.data(), payload.size());
    host->received(from, what);
    return true;
  }
  void push_all(FakeConnection& from, std::uint32_t worker, std::uint64_t step, int bits = 32) {
    for (const SliceId id : own)
      ASSERT_TRUE(push(from, head(worker, step, id, bits), encoded(contribution(worker, step), id, bits))) << "slice " << id.value;
  }

  // Messages of the chief
  // ------------------------------------------------------------------------------------------------------------------

  void apply(std::uint64_t version, std::vector<wire::Part> parts) { host->receive(update_of(version, std::move(parts))); }
  void release(std::uint32_t worker, std::uint64_t step, double rho = 0, int bits = 32, bool bf16_transfer = false) {
    host->receive(wire::Release{{worker}, {step}, rho, static_cast<std::uint8_t>(bits), 0, false, bf16_transfer});
  }
  std::shared_ptr<const Exported> export_now(std::uint64_t version, bool state = false) {
    exports.clear();
    host->receive(wire::Export{{version}, state});
    EXPECT_TRUE(run_until(io, [&] { return !exports.empty(); }));
    return exports.empty() ? nullptr : exports[0];
  }

  // Reference ----------------------------------------------------------------------------------------------------------------------------

  void apply_by_hand(const std::vector<std::pair<std::vector<float>, double>>& parts) {
    std::vector<store::WeightedPart> weighted;
    for (const auto& [flat, weight] : parts) weighted.push_back({flat, weight});
    store->apply(by_hand(store->version().value + 1), weighted);
  }
  std::vector<float> snapshot_by_hand(double rho) const {
    std::vector<float> flat(linear_values);
    store->snapshot(rho, flat);
    return flat;
  }
  void expect_same_values(const Exported& exported) const {
    std::vector<float> flat(linear_values);
    store->values(flat);
    for (const SliceId id : own)
      for (std::uint64_t i = layout[id].offset; i < layout[id].offset + layout[id].count; ++i)
        EXPECT_EQ(exported.values->floats()[i], flat[i]) << "value " << i;
  }
  /// Slices of `snapshot`, whole, in order, as `bits` say.
  void expect_sent(const FakeConnection& to, const std::vector<float>& snapshot, std::size_t first = 0, int bits = 32) const {
    ASSERT_GE(to.bulk_messages.size(), first + own.size());
    for (std::size_t s = 0; s < own.size(); ++s) {
      const transport::BulkMessage& bulk_message = to.bulk_messages[first + s];
      EXPECT_EQ(std::get<wire::Pulled>(bulk_message.head).slice, own[s]);
      EXPECT_EQ(bulk_message.priority, layout[own[s]].priority);
      const auto expected = encoded(snapshot, own[s], bits);
      EXPECT_TRUE(std::ranges::equal(bulk_message.payload, expected)) << "slice " << own[s].value;
    }
  }
  auto sent(const FakeConnection& connection, std::size_t bulk_messages) {
    return run_until(io, [&, bulk_messages] { return connection.bulk_messages.size() >= bulk_messages; });
  }

  boost::asio::io_context io;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{io.get_executor()};
  store::Layout layout = linear_layout(2);
  ServerId server{0};
  std::vector<SliceId> own = layout.of(server);
  std::vector<SliceId> foreign = layout.of(ServerId{1});
  FakeConnection left, right;
  std::vector<wire::Message> reported;  // to the chief
  std::vector<std::shared_ptr<const Exported>> exports;
  std::optional<store::ShardStore> store;
  std::optional<ShardHost> host;

 private:
  void to_chief(const wire::Message& message) override { reported.push_back(message); }
  void exported(const std::shared_ptr<Exported>& what) override { exports.push_back(what); }
};

}  // namespace motley::runtime
