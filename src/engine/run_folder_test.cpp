// Which folders a new run accepts.
#include "engine/run_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

namespace motley::engine {
namespace {

namespace fs = std::filesystem;

class RunFolders : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  void write(const std::string& name, const std::string& text = "x") const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  [[nodiscard]] std::set<fs::path> files() const { return {fs::recursive_directory_iterator(folder_), fs::recursive_directory_iterator()}; }

  const fs::path folder_ = fs::temp_directory_path() / ("motley-run-folders-" + std::to_string(getpid()));
};

TEST_F(RunFolders, A_new_run_accepts_an_empty_or_missing_folder) {
  EXPECT_TRUE(write_run_job(folder_, "job"));
  EXPECT_TRUE(write_run_job(folder_ / "deeper" / "still", "job"));
  EXPECT_TRUE(fs::exists(folder_ / "deeper" / "still" / "job.toml"));
  write("checkpoints/latest");  // names a file that does not exist
  EXPECT_TRUE(write_run_job(folder_, "job"));
}

TEST_F(RunFolders, A_new_run_refuses_a_folder_with_a_recording) {
  write("inputs.0.bin");
  const Outcome refused = write_run_job(folder_, "job");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(files().size(), 1U);
}

/// Also without the recording, which a user may have deleted because it is large.
TEST_F(RunFolders, A_new_run_leaves_a_folder_with_checkpoints_unchanged) {
  write("checkpoints/000000000005.safetensors");
  write("checkpoints/000000000010.safetensors");
  write("checkpoints/latest", "000000000010.safetensors");
  write("job.toml", "the job of before");
  const auto before = files();
  const Outcome refused = write_run_job(folder_, "another job");
  ASSERT_FALSE(refused.ok());
  for (const std::string& words : {folder_.string(), std::string("found 2 checkpoints"), std::string("000000000010.safetensors"),
                                   std::string("expected none"), std::string("--resume"), std::string("--from-scratch")})
    EXPECT_NE(refused.error().message.find(words), std::string::npos) << words << " is missing from: " << refused.error().message;
  EXPECT_EQ(files(), before);
  std::ifstream job(folder_ / "job.toml");
  EXPECT_EQ(std::string((std::istreambuf_iterator<char>(job)), std::istreambuf_iterator<char>()), "the job of before");
}

}  // namespace
}  // namespace motley::engine
