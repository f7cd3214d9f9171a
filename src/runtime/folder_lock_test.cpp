// Locks of folders; temporary folders, which are removed by the next process if theirs was killed.
#include "runtime/folder_lock.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "runtime/temporary_folder.h"

namespace motley::runtime {
namespace {

namespace fs = std::filesystem;

class FolderLocks : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(folder_);
    setenv("TMPDIR", folder_.c_str(), 1);
  }
  void TearDown() override {
    before_.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", before_.c_str(), 1);
    fs::remove_all(folder_);
  }
  /// Another process that performs `action` and then stays until it is killed.
  template <class Action>
  static pid_t process_that(Action action) {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe(ends.data()), 0);
    const pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      action();
      (void)!write(ends[1], "x", 1);
      for (;;) pause();
    }
    char reported = 0;
    EXPECT_EQ(read(ends[0], &reported, 1), 1);
    close(ends[0]);
    close(ends[1]);
    return pid;
  }
  static void end(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  [[nodiscard]] std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  std::string before_ = std::getenv("TMPDIR") == nullptr ? "" : std::getenv("TMPDIR");
  fs::path folder_ = fs::path(testing::TempDir()) / ("motley-locks-" + std::to_string(getpid()));
};

TEST_F(FolderLocks, AHeldLockIsRefusedWithItsProcess) {
  const auto lock = FolderLock::take(folder_ / "run", run_lock);
  ASSERT_TRUE(lock.ok()) << lock.error().message;
  const auto second = FolderLock::take(folder_ / "run", run_lock);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().next, Next::tell_user);
  EXPECT_NE(second.error().message.find("in use by process " + std::to_string(getpid())), std::string::npos) << second.error().message;
  EXPECT_TRUE(FolderLock::take(folder_ / "run", chief_lock).ok()) << "another lock of the same folder";
}

TEST_F(FolderLocks, TheLockOfAKilledProcessIsFree) {
  const pid_t owner = process_that([&] { (void)new FolderLock(std::move(*FolderLock::take(folder_, run_lock))); });
  const auto refused = FolderLock::take(folder_, run_lock);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("process " + std::to_string(owner)), std::string::npos) << refused.error().message;
  end(owner);
  EXPECT_TRUE(FolderLock::take(folder_, run_lock).ok());
}

TEST_F(FolderLocks, AFolderThatCannotBeCreatedIsBadInput) {
  std::ofstream(folder_ / "file") << "x";
  const auto lock = FolderLock::take(folder_ / "file" / "run", run_lock);
  ASSERT_FALSE(lock.ok());
  EXPECT_EQ(lock.error().next, Next::tell_user);
}

TEST_F(FolderLocks, TemporaryFoldersAreRemovedByTheNextOwner) {
  { EXPECT_TRUE(TemporaryFolder::make("motley-test", "tests").ok()); }
  EXPECT_EQ(entries(), 0U);

  const auto alive = TemporaryFolder::make("motley-test", "tests");
  ASSERT_TRUE(alive.ok());
  const pid_t owner = process_that([] { (void)new TemporaryFolder(std::move(*TemporaryFolder::make("motley-test", "tests"))); });
  EXPECT_EQ(entries(), 2U);
  end(owner);
  fs::create_directory(folder_ / "motley-test-notours");  // another pattern
  fs::create_directory(folder_ / "motley-abcdef");        // another name
  EXPECT_EQ(entries(), 4U);
  const auto next = TemporaryFolder::make("motley-test", "tests");
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(entries(), 4U) << "the abandoned one was removed, a new one was made";
  EXPECT_TRUE(fs::exists(alive->path()));
  EXPECT_TRUE(fs::exists(next->path()));
}

}  // namespace
}  // namespace motley::runtime
