// Child processes: their output, their environment and their ends.
#include "runtime/child.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "transport/recording_callbacks_for_tests.h"

namespace motley::runtime {
namespace {

using transport::run_ready;
using transport::run_until;

class ChildTest : public testing::Test {
 protected:
  void start(const ChildOptions& options) {
    auto started = Child::start(io, options,
                                {[this](const std::string& line) {
                                   EXPECT_FALSE(end.has_value()) << "a line after the end: " << line;
                                   lines.push_back(line);
                                 },
                                 [this](const ChildEnd& how) {
                                   EXPECT_FALSE(end.has_value()) << "ended twice";
                                   end = how;
                                 }});
    ASSERT_TRUE(started.ok()) << started.error().message;
    child = std::move(*started);
  }
  void shell(const std::string& script) { start({.command = {"/bin/sh", "-c", script}, .environment = {}}); }
  auto ends() {
    return run_until(io, [this] { return end.has_value(); });
  }
  auto says(const std::string& line) {
    return run_until(io, [this, line] { return !lines.empty() && lines.back() == line; });
  }

  boost::asio::io_context io;
  std::vector<std::string> lines;
  std::optional<ChildEnd> end;
  std::unique_ptr<Child> child;
};

TEST_F(ChildTest, ReportsLinesBeforeTheEnd) {
  shell("echo one; echo; echo two; printf three");
  ASSERT_TRUE(ends());
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "", "two", "three"}));
  EXPECT_TRUE(end->good());
  EXPECT_EQ(describe(*end), "exit code 0");
  EXPECT_GT(end->peak_rss_bytes, 0U);
  EXPECT_FALSE(child->alive());
}

TEST_F(ChildTest, ReportsTheExitCode) {
  shell("exit 3");
  ASSERT_TRUE(ends());
  EXPECT_TRUE(end->exited);
  EXPECT_EQ(end->code, 3);
  EXPECT_FALSE(end->good());
  EXPECT_EQ(describe(*end), "exit code 3");
}

TEST_F(ChildTest, ReportsTheSignalThatKilledIt) {
  shell("echo ready; exec tail -f /dev/null");
  ASSERT_TRUE(says("ready"));
  EXPECT_TRUE(child->alive());
  child->signal(SIGTERM);
  ASSERT_TRUE(ends());
  EXPECT_FALSE(end->exited);
  EXPECT_EQ(end->signal, SIGTERM);
  EXPECT_FALSE(end->out_of_memory);
  EXPECT_FALSE(end->good());
  child->signal(SIGTERM);  // it has ended: no effect
}

TEST_F(ChildTest, ReadsBothStreams) {
  shell("echo out; echo err >&2");
  ASSERT_TRUE(ends());
  EXPECT_EQ(lines, (std::vector<std::string>{"out", "err"}));
}

TEST_F(ChildTest, InheritsStderrWhenAsked) {
  start({.command = {"/bin/sh", "-c", "echo out; : >&2"}, .environment = {}, .inherit_errors = true});
  ASSERT_TRUE(ends());
  EXPECT_EQ(lines, std::vector<std::string>{"out"});
}

TEST_F(ChildTest, HasAnEmptyStdin) {
  shell("read line && echo \"$line\" || echo nothing");
  ASSERT_TRUE(ends());
  EXPECT_EQ(lines, std::vector<std::string>{"nothing"});
}

TEST_F(ChildTest, ReceivesTheEnvironmentAndAdditions) {
  ASSERT_EQ(setenv("MOTLEY_CHILD_OURS", "ours", 1), 0);
  ASSERT_EQ(setenv("MOTLEY_CHILD_BOTH", "ours", 1), 0);
  start({.command = {"env"}, .environment = {{"MOTLEY_CHILD_BOTH", "added"}, {"MOTLEY_CHILD_NEW", "new"}}});  // found on the path
  ASSERT_TRUE(ends());
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "MOTLEY_CHILD_OURS=ours"), 1);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "MOTLEY_CHILD_BOTH=added"), 1);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "MOTLEY_CHILD_BOTH=ours"), 0);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "MOTLEY_CHILD_NEW=new"), 1);
}

TEST_F(ChildTest, KeepsItsLastLines) {
  shell("i=0; while [ $i -lt 50 ]; do echo $i; i=$((i+1)); done");
  ASSERT_TRUE(ends());
  EXPECT_EQ(lines.size(), 50U);
  EXPECT_EQ(child->last_lines().size(), 20U);
  EXPECT_EQ(child->last_lines().front(), "30");
  EXPECT_EQ(child->last_lines().back(), "49");
}

TEST_F(ChildTest, CutsVeryLongLinesIntoPieces) {
  constexpr std::size_t written = 1'000'000;
  shell("head -c 1000000 /dev/zero | tr '\\0' x; echo; echo after");
  ASSERT_TRUE(ends());
  std::size_t read = 0;
  for (const std::string& line : lines) read += line.size();
  EXPECT_EQ(read, written + std::string("after").size());
  EXPECT_GT(lines.size(), 2U);
  EXPECT_EQ(lines.back(), "after");
  EXPECT_TRUE(end->good());
}

TEST_F(ChildTest, EndsAtOnceWhenTheProgramDoesNotExist) {
  start({.command = {"/no/such/program", "argument"}, .environment = {}});
  ASSERT_TRUE(ends());
  EXPECT_TRUE(end->exited);
  EXPECT_EQ(end->code, 127);
  ASSERT_FALSE(child->last_lines().empty());  // the reason
}

TEST_F(ChildTest, IsKilledAndReapedByTheDestructor) {
  shell("echo ready; exec tail -f /dev/null");
  ASSERT_TRUE(says("ready"));
  const pid_t pid = child->pid();
  child.reset();
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);  // and reaped
  run_ready(io);
  EXPECT_FALSE(end.has_value());
}

TEST_F(ChildTest, MayBeDestroyedInItsEndCallback) {
  auto started = Child::start(io, {.command = {"/bin/sh", "-c", "echo bye"}, .environment = {}}, {nullptr, [this](const ChildEnd& how) {
                                                                                                    child.reset();
                                                                                                    end = how;
                                                                                                  }});
  ASSERT_TRUE(started.ok());
  child = std::move(*started);
  ASSERT_TRUE(ends());
  EXPECT_TRUE(end->good());
}

TEST_F(ChildTest, MayBeDestroyedInItsLineCallback) {
  auto started = Child::start(io, {.command = {"/bin/sh", "-c", "echo one; echo two; exec tail -f /dev/null"}, .environment = {}},
                              {[this](const std::string& line) {
                                 lines.push_back(line);
                                 child.reset();
                               },
                               [this](const ChildEnd& how) { end = how; }});
  ASSERT_TRUE(started.ok());
  child = std::move(*started);
  ASSERT_TRUE(run_until(io, [this] { return child == nullptr; }));
  run_ready(io);
  EXPECT_EQ(lines, std::vector<std::string>{"one"});
  EXPECT_FALSE(end.has_value());
}

TEST_F(ChildTest, OrphansOfTheChildDoNotBlockTheEventLoop) {
  shell("(exec tail -f /dev/null) & echo $!");
  ASSERT_TRUE(run_until(io, [this] { return !lines.empty() && !child->alive(); }));
  EXPECT_FALSE(end.has_value());  // the orphan could still write
  child.reset();
  io.restart();
  io.run();  // returns: nothing is awaited
  kill(std::stoi(lines[0]), SIGKILL);
}

TEST(ChildEnds, AreDescribedInWords) {
  EXPECT_EQ(describe({.exited = false, .code = 0, .signal = SIGKILL, .out_of_memory = true, .peak_rss_bytes = 0}),
            "killed by the kernel: out of memory");
  EXPECT_EQ(describe({.exited = false, .code = 0, .signal = SIGKILL, .out_of_memory = false, .peak_rss_bytes = 0}).substr(0, 18),
            "killed by signal 9");
}

}  // namespace
}  // namespace motley::runtime
