// join(): arguments and environment of a program.
#include <gtest/gtest.h>
#include <motley/failure.h>
#include <motley/job.h>
#include <motley/session.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "runtime/temporary_folder.h"

namespace motley::library {
namespace {

/// An argv that join() may change.
class Arguments {
 public:
  explicit Arguments(std::vector<std::string> texts) : texts_(std::move(texts)) {
    for (std::string& text : texts_) pointers_.push_back(text.data());
    pointers_.push_back(nullptr);
    count = static_cast<int>(texts_.size());
  }
  Session join() { return motley::join(count, pointers_.data()); }
  [[nodiscard]] std::vector<std::string> left() const { return {pointers_.begin(), pointers_.begin() + count}; }
  int count = 0;

 private:
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
};

std::string refusal(std::vector<std::string> texts) {
  try {
    (void)Arguments(std::move(texts)).join();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.kind(), Failure::Kind::bad_input);
    return failure.what();
  }
  return "";
}

class Join : public testing::Test {
 protected:
  void SetUp() override {
    unsetenv("MOTLEY_CHIEF");
    unsetenv("MOTLEY_TOKEN");
  }
  void TearDown() override { SetUp(); }
};

TEST_F(Join, Takes_its_arguments_and_leaves_the_others) {
  Arguments arguments({"program", "--epochs", "3", "--join", "host:7000", "--node=slow", "data"});
  const Session session = arguments.join();
  EXPECT_EQ(session.join, "host:7000");
  EXPECT_EQ(session.node, "slow");
  EXPECT_EQ(arguments.left(), (std::vector<std::string>{"program", "--epochs", "3", "data"}));
}

TEST_F(Join, Without_arguments_this_process_is_a_chief_alone) {
  const Session session = Arguments({"program"}).join();
  EXPECT_TRUE(session.join.empty());
  EXPECT_TRUE(session.listen.empty());
  EXPECT_FALSE(session.local_workers.has_value());
}

TEST_F(Join, Reads_the_environment) {
  setenv("MOTLEY_CHIEF", "unix:chief", 1);
  setenv("MOTLEY_TOKEN", " 0123456789abcdef\n", 1);
  const Session session = Arguments({"program"}).join();
  EXPECT_EQ(session.join, "unix:chief");
  EXPECT_EQ(session.token, "0123456789abcdef");
}

TEST_F(Join, Refuses_what_it_cannot_use) {
  EXPECT_NE(refusal({"program", "--join"}).find("found no value"), std::string::npos);
  EXPECT_NE(refusal({"program", "--local-workers", "two"}).find("\"two\""), std::string::npos);
  EXPECT_NE(refusal({"program", "--token-file", "no-such-file"}).find("no-such-file"), std::string::npos);
  EXPECT_NE(refusal({"program", "--join", "a:1", "--listen", "b:2"}).find("chief or a worker"), std::string::npos);
}

TEST_F(Join, Reads_a_job_by_its_file) {
  const auto folder = runtime::TemporaryFolder::make("motley-session-test", "a job");
  ASSERT_TRUE(folder.ok());
  std::ofstream(folder->path() / "small.toml") << "[job]\nseed = 5\n";
  const Job job = read_job(folder->path() / "small.toml");
  EXPECT_EQ(job.name, "small");
  EXPECT_EQ(job.text, "[job]\nseed = 5\n");
  EXPECT_THROW((void)read_job(folder->path() / "none.toml"), Failure);
}

}  // namespace
}  // namespace motley::library
