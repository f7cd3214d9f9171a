// Files of a run on a disk that fills up: told once, what was whole stays, training is not disturbed.
#include "report/append_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>

namespace motley::report {
namespace {

/// No file may grow beyond so many bytes while this lives.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit now = before_;
    now.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~SmallDisk() { setrlimit(RLIMIT_FSIZE, &before_); }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

 private:
  rlimit before_{};
};

class AppendFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::signal(SIGXFSZ, SIG_IGN);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string text() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::filesystem::path folder_ = std::filesystem::path(testing::TempDir()) / ("motley-append-" + std::to_string(getpid()));
  std::filesystem::path path_ = folder_ / "lines";
  std::vector<std::string> recorded_;
  WriteErrors errors_{[this](const std::string& sentence) { recorded_.push_back(sentence); }};
};

TEST_F(AppendFiles, WhatIsWrittenIsThereAfterAFlushAndStaysWhenOneGoesOn) {
  for (const char* line : {"one\n", "two\n"}) {
    AppendFile file(path_, AppendFile::Begin::at_end, errors_);
    file.write(line);
    file.flush();
    EXPECT_TRUE(file.sync().ok());
  }
  EXPECT_EQ(text(), "one\ntwo\n");
  AppendFile(path_, AppendFile::Begin::anew, errors_).write("three\n");
  EXPECT_EQ(text(), "three\n");
  EXPECT_TRUE(errors_.none());
}

TEST_F(AppendFiles, AFullDiskIsToldOnceAndTheLastWholeWriteStays) {
  AppendFile file(path_, AppendFile::Begin::at_end, errors_);
  const SmallDisk disk(10);
  for (int i = 0; i < 5; ++i) {
    file.write("1234\n");
    file.write("5678\n");
    file.flush();
  }
  ASSERT_EQ(recorded_.size(), 1U);
  EXPECT_NE(recorded_[0].find("lines: cannot be written: File too large"), std::string::npos) << recorded_[0];
  EXPECT_EQ(text(), "1234\n5678\n") << "nothing of what did not fit";
  EXPECT_FALSE(errors_.none());
  EXPECT_EQ(errors_.files(), "lines");
}

TEST_F(AppendFiles, APieceOfAWriteIsTakenBack) {
  AppendFile file(path_, AppendFile::Begin::anew, errors_);
  const SmallDisk disk(7);
  file.write("1234\n");
  file.flush();
  file.write("5678\n");
  file.flush();
  EXPECT_EQ(text(), "1234\n");
  EXPECT_EQ(recorded_.size(), 1U);
}

TEST_F(AppendFiles, AFullDeviceAndAMissingFolderAreToldToo) {
  {
    AppendFile full("/dev/full", AppendFile::Begin::at_end, errors_);
    full.write("x");
    EXPECT_TRUE(errors_.none()) << "it is still gathered";
    full.flush();
  }
  AppendFile nowhere(folder_ / "none" / "file", AppendFile::Begin::anew, errors_);
  nowhere.write("x");
  nowhere.flush();
  EXPECT_TRUE(nowhere.sync().ok()) << "what has failed is not told again";
  ASSERT_EQ(recorded_.size(), 2U);
  EXPECT_NE(recorded_[0].find("No space left on device"), std::string::npos) << recorded_[0];
  EXPECT_NE(recorded_[1].find("No such file or directory"), std::string::npos) << recorded_[1];
}

TEST_F(AppendFiles, WhatIsMendedIsNoErrorAndIsToldWhenItFailsAgain) {
  errors_.failed("checkpoints", "full");
  errors_.failed("checkpoints", "full");
  errors_.mended("checkpoints");
  EXPECT_TRUE(errors_.none());
  errors_.failed("checkpoints", "full");
  EXPECT_EQ(recorded_.size(), 2U);
}

}  // namespace
}  // namespace motley::report
