// Reads the idx files of MNIST and Fashion-MNIST: four files, plain or gzip.
// images := 0x00000803:u32 count:u32 rows:u32 columns:u32 pixel:u8[count*rows*columns]   (big-endian)
// labels := 0x00000801:u32 count:u32 label:u8[count]
#pragma once
#include <filesystem>
#include <string_view>

#include "learn/pictures.h"
#include "learn/split.h"

namespace motley::learn {

/// `remedy` says how to get the files. On validation the test files are not opened.
Result<Pictures> load_idx(const std::filesystem::path& folder, std::string_view remedy, EvaluateOn evaluate_on);

}  // namespace motley::learn
