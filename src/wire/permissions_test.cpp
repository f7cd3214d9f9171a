#include "wire/permissions.h"

#include <gtest/gtest.h>

#include <array>
#include <boost/mp11.hpp>
#include <limits>
#include <vector>

#include "wire/frame.h"

namespace motley::wire {
namespace {

constexpr std::array senders{Sender::unidentified,  Sender::worker,         Sender::server, Sender::servers_worker, Sender::servers_chief,
                             Sender::workers_chief, Sender::workers_server, Sender::stage,  Sender::stages_chief,   Sender::neighbour};

bool may(Sender sender, Lane lane, const Message& message) {
  const auto why = objection(sender, lane, message);
  return !why || why->find("never sends") == std::string::npos;
}

TEST(Permissions, Every_message_has_a_sender_on_one_lane) {
  boost::mp11::mp_for_each<Message>([](const auto& message) {
    std::size_t control = 0, bulk = 0;
    for (const Sender sender : senders) {
      control += may(sender, Lane::control, message) ? 1U : 0U;
      bulk += may(sender, Lane::bulk, message) ? 1U : 0U;
    }
    EXPECT_GT(control + bulk, 0U) << name_of(message);
    EXPECT_TRUE(control == 0 || bulk == 0) << name_of(message);
  });
}

TEST(Permissions, Role_sends_its_own_messages_only) {
  const std::vector<Message> of_chiefs{Welcome{}, Order{},       Fenced{}, Stop{},           Apply{},    Discard{},
                                       Release{}, Forget{},      Export{}, JobDescription{}, StateEnd{}, AlignmentTest{},
                                       Cancel{},  AssignStage{}, Allow{},  Admitted{}};
  for (const Message& message : of_chiefs)
    for (const Sender sender : {Sender::unidentified, Sender::worker, Sender::server, Sender::servers_worker, Sender::workers_server,
                                Sender::stage, Sender::neighbour})
      for (const Lane lane : {Lane::control, Lane::bulk}) EXPECT_FALSE(may(sender, lane, message)) << name_of(message);
  EXPECT_FALSE(may(Sender::worker, Lane::control, Gathered{}));
  EXPECT_FALSE(may(Sender::worker, Lane::control, ServerHello{}));
  EXPECT_FALSE(may(Sender::worker, Lane::control, JoinRequest{})) << "it has identified itself already";
  EXPECT_FALSE(may(Sender::server, Lane::control, Hello{}));
  EXPECT_FALSE(may(Sender::unidentified, Lane::bulk, Push{}));
  EXPECT_FALSE(may(Sender::worker, Lane::control, Push{}));
  EXPECT_FALSE(may(Sender::workers_chief, Lane::control, Apply{})) << "only servers receive that";
}

TEST(Permissions, Impossible_values_are_refused) {
  const auto refused = [](const Message& message) { return objection_to_values(message).has_value(); };
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(refused(JoinRequest{"node-1"}));
  EXPECT_TRUE(refused(JoinRequest{"\x1b[2J"}));
  EXPECT_TRUE(refused(JoinRequest{std::string(65, 'x')}));
  EXPECT_FALSE(refused(JoinRequest{std::string(64, 'x')}));
  EXPECT_TRUE(refused(ServerHello{{1}, "127.0.0.1:\n1", {}}));
  EXPECT_TRUE(refused(ServerHello{{1}, "127.0.0.1:1", Duration{-1}}));
  EXPECT_TRUE(refused(ServerHello{{1}, "127.0.0.1:1", Duration::max()}));
  EXPECT_TRUE(refused(JobDescription{"a job\x07", {}, {}}));
  EXPECT_FALSE(refused(JobDescription{"a = 1\n\tb = 2\n", {"", "unix:x"}, {}}));
  Contributed reported{.report = {.loss_sum = none, .squared_norm = none, .residual = none, .update_norm = none}};
  EXPECT_FALSE(refused(reported)) << "a diverging model reports NaN";
  AlignmentResult aligned;
  aligned.alignment = none;
  EXPECT_FALSE(refused(aligned)) << "a diverging model reports NaN";
  reported.report.compute = Duration{-1};
  EXPECT_TRUE(refused(reported));
  Committed committed{.parts = {{.part = 2, .began = Duration{3}, .ended = Duration{4}}}};
  EXPECT_FALSE(refused(committed));
  committed.parts[0].part = 7;
  EXPECT_TRUE(refused(committed));
  committed.parts[0] = {.part = 1, .began = Duration{4}, .ended = Duration{3}};
  EXPECT_TRUE(refused(committed));
  EXPECT_TRUE(refused(Apply{.version = {1}, .rate = none, .parts = {Part{}}}));
  EXPECT_TRUE(refused(StageSlice{.state_kind = static_cast<StateKind>(9)}));
  EXPECT_TRUE(refused(StageSlice{.offset = ~std::uint64_t{0}}));
  EXPECT_FALSE(refused(ActivationSlice{.offset = 5, .shape = {2, 3}}));
  EXPECT_TRUE(refused(ActivationSlice{.offset = 6, .shape = {2, 3}}));
  EXPECT_TRUE(refused(ActivationSlice{.shape = {std::int64_t{1} << 20, std::int64_t{1} << 20}}));
  EXPECT_TRUE(refused(ActivationSlice{.shape = {0}}));
  EXPECT_TRUE(refused(ActivationSlice{}));
  EXPECT_TRUE(refused(Order{})) << "no sample";
  EXPECT_TRUE(refused(AssignStage{}));
  EXPECT_FALSE(refused(Welcome{{0}, 1, ~std::uint64_t{0}})) << "a key is any number";
}

TEST(Permissions, Foreign_text_is_escaped_and_cut) {
  EXPECT_EQ(printable("node-1"), "node-1");
  EXPECT_EQ(printable("a\r\n\x1b[2J\xff"), "a\\x0d\\x0a\\x1b[2J\\xff");
  EXPECT_EQ(printable(std::string(1'000'000, 'x'), 64), std::string(64, 'x') + "...");
}

}  // namespace
}  // namespace motley::wire
