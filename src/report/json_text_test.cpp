#include "report/json_text.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <limits>

namespace motley::report {
namespace {

namespace json = boost::json;

TEST(JsonText, IsJsonWhateverTheNumbersAre) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const json::value figures =
      json::object{{"loss", nan}, {"list", json::array{1.5, -infinity, json::object{{"deep", infinity}}}}, {"n", 7}};
  EXPECT_EQ(json_text(figures), R"({"loss":null,"list":[1.5E0,null,{"deep":null}],"n":7})");
  EXPECT_TRUE(json::parse(json_text(figures)).at("loss").is_null());
  EXPECT_EQ(json_text(nan), "null");
}

}  // namespace
}  // namespace motley::report
