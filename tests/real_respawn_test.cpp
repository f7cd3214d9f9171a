// Processes that die again and again: one without progress is not restarted for ever.
#include "real_cluster.h"

namespace real {
namespace {

class RealRespawn : public RealCluster {
 protected:
  /// Kills the process that `find` returns, as soon as there is one, until the launcher prints `words`.
  template <class Find>
  std::uint64_t kill_until(Program& program, const std::string& words, Find find) {
    std::uint64_t deaths = 0;
    pid_t last = 0;
    EXPECT_TRUE(wait_until([&] {
      const std::optional<pid_t> victim = find();
      if (victim && *victim != last) {
        kill(*victim, SIGKILL);
        last = *victim;
        ++deaths;
      }
      return !program.alive() || program.err().find(words) != std::string::npos;
    })) << program.err();
    return deaths;
  }
};

TEST_F(RealRespawn, Process_that_dies_5_times_without_progress_is_given_up) {
  Program program = train("run", {"--respawn", "--set", "job.max_epochs=400", "--set", "job.evaluate_every=1"});
  await_evaluations(program, "run", 1);
  const std::uint64_t deaths = kill_until(program, "c died 5 times", [&]() -> std::optional<pid_t> {
    const auto workers = workers_of(program);
    return workers.contains("c") ? std::optional(workers.at("c")) : std::nullopt;
  });
  EXPECT_GE(deaths, 5U);
  EXPECT_LE(deaths, 6U) << "steps before its first death are not progress after it";
  ASSERT_TRUE(program.alive()) << "the others continue\n" << program.err();
  EXPECT_NE(program.err().find("at last: killed by signal 9 (Killed); it is not started again. Find what ends it (run/logs/c.log)"),
            std::string::npos)
      << program.err();

  kill_until(program, "the chief died 5 times", [&] { return chief_of(program); });
  EXPECT_EQ(program.wait().code, 3) << program.err();
  const std::string reported = program.err();
  EXPECT_NE(reported.find("at last: killed by signal 9 (Killed); giving up"), std::string::npos) << reported;
  EXPECT_NE(reported.find("go on with: motley train run --resume"), std::string::npos) << reported;
}

}  // namespace
}  // namespace real
