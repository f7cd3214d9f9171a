#include "config/job_reference.h"

#include <gtest/gtest.h>

#include <string>

namespace motley::config {
namespace {

TEST(JobReference, Every_key_has_a_meaning) {
  const std::string page = job_reference();
  EXPECT_EQ(page.find("|  |\n"), std::string::npos) << page;
  for (const char* key :
       {"max_epochs", "samples_per_second", "mean_gap_s", "per_worker", "control_variate", "for", "activation_bytes_per_sample"})
    EXPECT_NE(page.find("`" + std::string(key) + "`"), std::string::npos) << key;
}

}  // namespace
}  // namespace motley::config
