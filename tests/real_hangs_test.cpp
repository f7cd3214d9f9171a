// Real processes that are alive but make no progress: a worker whose device hangs, a server that does nothing.
#include <csignal>

#include "real_cluster.h"

namespace real {
namespace {

using Words = std::vector<std::string>;

class RealHangs : public RealCluster {
 protected:
  Program train_slowly(const Words& more) {
    Words words = slow_devices();
    words.insert(words.end(), more.begin(), more.end());
    return train("run", words);
  }
};

TEST_F(RealHangs, Worker_with_a_hung_device_is_expelled_by_name) {
  Program program = train_slowly({"--set", "cluster.step_limit_s=1.5", "--set", R"(cluster.fault=[{at=1.0, kind="hang", node="b"}])"});
  expect_good_end(program);
  expect_exact_ledger("run");
  const std::string reported = program.err();
  EXPECT_NE(reported.find(" on node b ("), std::string::npos) << reported;
  EXPECT_NE(reported.find("is expelled: its process answers but has not computed step"), std::string::npos) << reported;
  EXPECT_NE(reported.find("raise cluster.step_limit_s, which is 1.5"), std::string::npos) << reported;
  const auto left = members_of(folder_ / "run").left;
  ASSERT_FALSE(left.empty());
  for (const auto& [worker, reason] : left) EXPECT_EQ(reason, "step_too_long") << worker;  // on a busy machine others may be slow as well
  EXPECT_EQ(json::parse(program.out()).at("deaths").to_number<int>(), 0) << "its process did not die";
}

TEST_F(RealHangs, Stuck_server_ends_the_run_by_name) {
  Program program = train_slowly(
      {"--set", "wire.slice=\"512B\"", "--set", "cluster.server.count=2", "--set", "cluster.step_limit_s=4", "--checkpoint-every", "10"});
  await_evaluations(program, "run", 1);
  ASSERT_TRUE(server_of(program).has_value());
  kill(server_of(program).value(), SIGSTOP);
  const End end = program.wait();
  EXPECT_EQ(end.code, 3) << program.err();
  EXPECT_NE(program.err().find("server 1 at "), std::string::npos) << program.err();
  EXPECT_NE(program.err().find("is connected but has done nothing for"), std::string::npos) << program.err();
  EXPECT_NE(program.err().find("--resume"), std::string::npos) << program.err();
  EXPECT_TRUE(members_of(folder_ / "run").left.empty()) << "no worker was expelled";
}

}  // namespace
}  // namespace real
