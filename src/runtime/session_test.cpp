// The messages of a session, the order in which it accepts those of its chief, and its reconnection. Over unix sockets.
#include "runtime/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/job_preparation.h"
#include "transport/pairs_for_tests.h"

namespace motley::runtime {
namespace {

using transport::run_until;

/// Plays the chief: accepts connections and records what they send.
class AcceptingChief : public transport::AcceptCallbacks {
 public:
  AcceptingChief(boost::asio::io_context& io, const transport::Address& address)
      : acceptor_(transport::listen(io, address, {}, *this).value()) {}

  transport::RecordingCallbacks received;
  std::vector<std::unique_ptr<transport::Connection>> connections;

 private:
  void accepted(std::unique_ptr<transport::Connection> connection) override {
    connections.push_back(std::move(connection));
    connections.back()->start(received);
  }
  void refused(const std::string&, const std::string&) override {}
  std::unique_ptr<transport::Acceptor> acceptor_;
};

class Sessions : public testing::Test, public PeerOwner, public SessionOwner {
 protected:
  static SessionOptions options(const std::string& name, const transport::Address& address) {
    SessionOptions made;
    made.name = name;
    made.chief = address;
    made.join_heartbeat = std::chrono::milliseconds(5);
    made.reconnect = {.first_pause = std::chrono::milliseconds(1),
                      .longest_pause = std::chrono::milliseconds(2),
                      .patience = std::chrono::hours(1),
                      .first_contact = std::chrono::milliseconds(0)};
    return made;
  }
  wire::Objection objection(const PeerConnection&, wire::Lane, const wire::Message& message) const override {
    return session.objection_to_order(message);
  }
  void expel(PeerConnection& peer, const std::string& why) override { peer.close(why); }
  void on_message(PeerConnection&, wire::Message message) override {
    if (std::holds_alternative<wire::JobDescription>(message)) session.job_received();
    messages.push_back(std::move(message));
  }
  std::span<std::byte> receive_buffer(PeerConnection& from, const wire::Message&, std::size_t bytes) override {
    return from.discard(bytes);
  }
  void received(PeerConnection&, const wire::Message&) override {}
  void closed(PeerConnection& peer, const Error& why) override {
    EXPECT_TRUE(session.is_chief(peer));
    session.lose(why.message);
  }
  void join_heartbeat() override { ++heartbeats; }
  void disconnected() override {
    ++losses;
    EXPECT_EQ(session.chief(), nullptr);
  }
  void ended(const Outcome& how) override { over = how; }

  auto connects(std::size_t times) {
    return run_until(io, [this, times] { return chief.connections.size() == times && session.chief() != nullptr; });
  }

  boost::asio::io_context io;
  transport::Address address = transport::fresh_socket();
  std::vector<std::string> log;
  std::vector<wire::Message> messages;
  int heartbeats = 0;
  int losses = 0;
  std::optional<Outcome> over;
  AcceptingChief chief{io, address};
  Session session{io, options("node-1", address), *this, *this, [this](const std::string& line) { log.push_back(line); }};
};

TEST_F(Sessions, Introduce_the_process_and_keep_the_connection_alive) {
  session.start();
  ASSERT_TRUE(connects(1));
  ASSERT_TRUE(run_until(io, [this] { return !chief.received.messages.empty() && heartbeats > 1; }));
  EXPECT_EQ(std::get<wire::JoinRequest>(chief.received.messages[0]).node, "node-1");
  EXPECT_FALSE(session.has_job());
}

TEST_F(Sessions, Accept_one_job_description_before_anything_else) {
  EXPECT_TRUE(session.objection_to_order(wire::Fenced{}));
  session.start();
  ASSERT_TRUE(connects(1));
  EXPECT_FALSE(session.objection_to_order(wire::JobDescription{}));
  chief.connections[0]->send(wire::JobDescription{"the job", {}, {}});
  ASSERT_TRUE(run_until(io, [this] { return session.has_job(); }));
  EXPECT_EQ(session.objection_to_order(wire::JobDescription{}), "its JobDescription comes after the job");
  EXPECT_FALSE(session.objection_to_order(wire::Fenced{}));
}

TEST_F(Sessions, Connect_again_after_a_loss_and_forget_the_job) {
  session.start();
  ASSERT_TRUE(connects(1));
  chief.connections[0]->send(wire::JobDescription{"the job", {}, {}});
  ASSERT_TRUE(run_until(io, [this] { return session.has_job(); }));
  chief.connections[0]->close("so");
  ASSERT_TRUE(connects(2));
  EXPECT_EQ(losses, 1);
  EXPECT_FALSE(session.has_job());
  EXPECT_FALSE(over);
}

TEST_F(Sessions, Deliver_nothing_of_a_connection_that_was_lost) {
  session.start();
  ASSERT_TRUE(connects(1));
  chief.connections[0]->send(wire::JobDescription{"the job", {}, {}});
  session.lose("a server was lost");
  transport::run_ready(io);
  EXPECT_TRUE(messages.empty());
  EXPECT_EQ(log, std::vector<std::string>{"a server was lost; trying again"});
}

TEST_F(Sessions, Ignore_callbacks_of_an_earlier_attempt) {
  session.start();
  ASSERT_TRUE(connects(1));
  int calls = 0;
  auto early = session.bind([&] { ++calls; });
  early();
  EXPECT_EQ(calls, 1);
  session.lose("so");
  early();
  auto late = session.bind([&] { ++calls; });
  late();
  EXPECT_EQ(calls, 2);
  session.finish(Done{});
  late();
  EXPECT_EQ(calls, 2);
}

TEST_F(Sessions, End_once_and_keep_the_connection_open) {
  session.start();
  ASSERT_TRUE(connects(1));
  session.finish(Done{});
  session.finish(world_failed("so"));
  session.lose("so");
  ASSERT_TRUE(over);
  EXPECT_TRUE(over->ok());
  EXPECT_TRUE(session.is_over());
  EXPECT_EQ(losses, 0);
  chief.connections[0]->send(wire::JobDescription{"the job", {}, {}});
  transport::run_ready(io);
  EXPECT_TRUE(messages.empty());
  EXPECT_FALSE(chief.received.ended());
}

TEST_F(Sessions, End_when_another_attempt_cannot_help) {
  session.start();
  ASSERT_TRUE(connects(1));
  session.lose(bad_input("another job"));
  ASSERT_TRUE(over);
  EXPECT_EQ(over->error().message, "node-1: another job");
}

TEST_F(Sessions, Refuse_a_name_that_no_chief_accepts) {
  Session unnamed(io, options("a\nb", address), *this, *this, [](const std::string&) {});
  unnamed.start();
  ASSERT_TRUE(over);
  EXPECT_EQ(over->error().next, Next::tell_user);
  EXPECT_NE(over->error().message.find("--node"), std::string::npos);
}

TEST(JobPreparations, Run_beside_the_event_loop_and_answer_on_it) {
  boost::asio::io_context io;
  const auto working = boost::asio::make_work_guard(io);
  CallbackScope scope;
  std::vector<int> results;
  std::vector<std::string> log;
  {
    JobPreparation<int> preparation(
        io, [](const std::string& job) -> Result<int> { return static_cast<int>(job.size()); },
        [&](const std::string& line) { log.push_back(line); });
    preparation.start("seven..", scope.bind([&](Result<int> made) { results.push_back(made.value()); }));
    ASSERT_TRUE(run_until(io, [&] { return !results.empty(); }));
    preparation.start("twelve......", scope.bind([&](Result<int> made) { results.push_back(made.value()); }));
    scope.cancel();
  }
  transport::run_ready(io);
  EXPECT_EQ(results, std::vector<int>{7});
  EXPECT_EQ(log.size(), 2U);
}

}  // namespace
}  // namespace motley::runtime
