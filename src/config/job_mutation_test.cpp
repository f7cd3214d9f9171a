// Randomly damaged jobs (invalid numbers, unknown words, binary bytes) give a job or an error, never anything else.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "base/mutations_for_tests.h"
#include "config/job.h"

namespace motley::config {
namespace {

std::string example(const std::string& name) {
  std::ifstream file(std::filesystem::path(MOTLEY_SOURCE_DIR) / "examples" / (name + ".toml"));
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(JobMutations, Give_a_job_or_an_error_for_the_user) {
  const std::vector<std::string> jobs{example("4421-cheap"), example("pipe4-4421-heavy"), example("4421t-cheap"), example("mixed")};
  const std::uint64_t before = peak_bytes();
  std::uint64_t good = 0;
  for (std::uint64_t seed = 0; seed < mutations; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, "job");
    const std::string& job = jobs[rng.below(jobs.size())];
    ASSERT_FALSE(job.empty());
    const auto read = parse_job(mutated_text(job, rng), "job.toml");
    if (read.ok()) {
      ++good;
      continue;
    }
    ASSERT_EQ(read.error().next, Next::tell_user);
    ASSERT_FALSE(read.error().message.empty());
  }
  EXPECT_GT(good, 0U) << "a change in a comment or name leaves a valid job";
  EXPECT_LT(peak_bytes() - before, most_growth);
}

}  // namespace
}  // namespace motley::config
