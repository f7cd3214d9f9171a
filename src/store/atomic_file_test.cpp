// Atomic writes: the old file survives a write that fails.
#include "store/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>

namespace motley::store {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(AtomicFile, AFullDiskLeavesTheOldFileAndNoPartialFile) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / ("motley-whole-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::filesystem::path path = folder / "file";
  ASSERT_TRUE(write_atomically(path, "old").ok());
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 100;
  setrlimit(RLIMIT_FSIZE, &small);
  const Outcome full = write_atomically(path, std::string(101, 'x'));
  setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().next, Next::give_up);
  EXPECT_NE(full.error().message.find("File too large"), std::string::npos) << full.error().message;
  EXPECT_EQ(text_of(path), "old");
  EXPECT_FALSE(std::filesystem::exists(path.string() + ".part"));
  ASSERT_TRUE(write_atomically(path, "new").ok());
  EXPECT_EQ(text_of(path), "new");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace motley::store
