// A server that speaks the protocol and sends slices that cannot be used: the worker logs the reason, never computes on them, and
// reconnects.
#include <fmt/format.h>

#include "codec/codec.h"
#include "runtime/processes_for_tests.h"

namespace motley::runtime {
namespace {

/// Plays a chief until a worker has attached, and sends it the messages of the test. A worker that reconnects is told that training is
/// over.
class MaliciousChief : public transport::AcceptCallbacks, public transport::ConnectionCallbacks {
 public:
  using Messages = std::function<std::vector<transport::BulkMessage>()>;
  MaliciousChief(boost::asio::io_context& io, const transport::Address& address, const transport::Options& options, Messages messages)
      : messages_(std::move(messages)), acceptor_(transport::listen(io, address, options, *this).value()) {}

  std::vector<std::string> ends;  // reasons of closed connections
  bool computed = false;          // the worker has computed on these slices

  void accepted(std::unique_ptr<transport::Connection> connection) override {
    pending_workers_.push_back(std::move(connection));
    pending_workers_.back()->start(*this);
  }
  void refused(const std::string&, const std::string&) override {}

  void on_message(transport::Connection& from, wire::Message message) override {
    if (std::holds_alternative<wire::JoinRequest>(message)) from.send(wire::JobDescription{"the job", {""}, {}});
    if (const auto* hello = std::get_if<wire::Hello>(&message)) {
      if (pending_workers_.size() > 1) return from.send(wire::Stop{});
      from.send(wire::Welcome{WorkerId{0}, hello->attempt});
    }
    if (std::holds_alternative<wire::Attach>(message)) {
      wire::Order order{};  // step 0 of worker 0
      order.local_steps = 1;
      order.rate = 0.1;
      order.push_bits = fp32_bits;
      order.lease.ranges = {{0, 0, 4}};
      from.send(order);
      for (const transport::BulkMessage& bulk_message : messages_()) from.send(bulk_message);
    }
    if (std::holds_alternative<wire::Contributed>(message)) {
      computed = true;
      from.send(wire::Stop{});
    }
  }
  std::span<std::byte> receive_buffer(transport::Connection&, const wire::Message&, std::size_t bytes) override {
    pushed_.resize(bytes);
    return pushed_;
  }
  void received(transport::Connection&, const wire::Message&) override {}
  void sent(transport::Connection&, std::uint64_t) override {}
  void closed(transport::Connection&, const Error& why) override { ends.push_back(why.message); }

 private:
  Messages messages_;
  std::vector<std::byte> pushed_;  // the last slice
  std::unique_ptr<transport::Acceptor> acceptor_;
  std::vector<std::unique_ptr<transport::Connection>> pending_workers_;
};

struct Case {
  std::string name;
  std::uint8_t bits = fp32_bits;
  bool rounded = false;
  std::uint32_t slice = 0;
  std::ptrdiff_t too_many = 0;  // bytes
  bool device = true;           // the worker has a device that keeps encoded values
  bool bf16_transfer = true;    // and computes with bf16 weights
};
void PrintTo(const Case& lie, std::ostream* out) { *out << lie.name; }

class MaliciousServer : public Processes, public testing::WithParamInterface<Case> {};

TEST_P(MaliciousServer, IsLeftAndTheWorkerReconnects) {
  const Case& lie = GetParam();
  job.devices = lie.device;
  job.rounds = job.bf16_transfer = lie.device && lie.bf16_transfer;
  const store::Layout layout = linear_layout();
  const std::uint64_t count = layout.slices[std::min<std::size_t>(lie.slice, layout.slices.size() - 1)].count;
  const auto codec = codec::make(lie.bits);
  const std::size_t bytes = codec.ok() ? (*codec)->encoded_bytes(count) : count;
  const std::vector<std::byte> payload(bytes + static_cast<std::size_t>(lie.too_many));
  MaliciousChief server(io, address, options, [&] {
    const wire::Pulled head{WorkerId{0}, Step{0}, Version{0}, SliceId{lie.slice}, lie.bits, lie.rounded};
    return std::vector{transport::BulkMessage{head, payload, 0, 0}};
  });
  SmallWorker& worker = start_worker(0);
  ASSERT_TRUE(run_until(io, [&] { return worker.over.has_value(); }));
  EXPECT_TRUE(worker.over->ok()) << worker.over->error().message;
  EXPECT_FALSE(server.computed);
  EXPECT_GE(server.ends.size(), 1U);
  const auto says_so = [](const std::string& line) { return line.find("trying again") != std::string::npos; };
  EXPECT_EQ(std::count_if(worker.log.begin(), worker.log.end(), says_so), 1) << fmt::format("{}", fmt::join(worker.log, "\n"));
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, MaliciousServer,
    testing::Values(Case{.name = "RoundedForADeviceThatComputesInFp32", .bits = 16, .rounded = true, .bf16_transfer = false},
                    Case{.name = "RoundedForACpu", .bits = 16, .rounded = true, .device = false},
                    Case{.name = "RoundedToFewerBitsThanBf16", .bits = 8, .rounded = true},
                    Case{.name = "RoundedAndTooLong", .bits = 16, .rounded = true, .too_many = 2},
                    Case{.name = "RoundedAndTooShort", .bits = 16, .rounded = true, .too_many = -2},
                    Case{.name = "AChangeOfNothing", .bits = 16}, Case{.name = "AChangeOfNothingForACpu", .bits = 16, .device = false},
                    Case{.name = "TooManyFloats", .too_many = 4}, Case{.name = "TooFewFloats", .too_many = -4},
                    Case{.name = "BitsWithoutCodec", .bits = 5}, Case{.name = "BitsWithoutCodecForACpu", .bits = 5, .device = false},
                    Case{.name = "AnUnknownSlice", .slice = 99}),
    [](const auto& lie) { return lie.param.name; });

/// The control: the worker computes on the slices of the same server when they are right.
TEST_F(Processes, AWorkerComputesForACorrectServer) {
  for (const bool bf16_transfer : {false, true}) {
    job.devices = true;
    job.rounds = job.bf16_transfer = bf16_transfer;
    const store::Layout layout = linear_layout();
    const std::vector<std::byte> payload(linear_values * sizeof(float));
    MaliciousChief server(io, address, options, [&] {
      std::vector<transport::BulkMessage> all;
      for (std::uint32_t s = 0; s < layout.slices.size(); ++s) {
        const wire::Pulled head{WorkerId{0}, Step{0}, Version{0}, SliceId{s}, bf16_transfer ? bf16_bits : fp32_bits, bf16_transfer};
        all.push_back(
            {head, std::span(payload).first(codec::encoded_bytes(layout.slices[s].bits(head.bits), layout.slices[s].count)), 0, s});
      }
      return all;
    });
    SmallWorker& worker = start_worker(0);
    ASSERT_TRUE(run_until(io, [&] { return worker.over.has_value(); }));
    EXPECT_TRUE(worker.over->ok()) << worker.over->error().message;
    EXPECT_TRUE(server.computed);
    workers.clear();
    address = fresh_socket();
  }
}

}  // namespace
}  // namespace motley::runtime
