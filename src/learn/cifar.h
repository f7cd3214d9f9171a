// Reads the binary version of CIFAR-10 and CIFAR-100: records without a header, colour planes red, green, blue of 32x32 bytes.
// cifar10  record := label:u8 pixel:u8[3072]                  data_batch_1.bin .. data_batch_5.bin, test_batch.bin
// cifar100 record := coarse:u8 fine:u8 pixel:u8[3072]         train.bin, test.bin; the fine label is used
#pragma once
#include <filesystem>

#include "learn/pictures.h"
#include "learn/split.h"

namespace motley::learn {

/// On validation the test file is not opened.
Result<Pictures> load_cifar10(const std::filesystem::path& folder, EvaluateOn evaluate_on);
Result<Pictures> load_cifar100(const std::filesystem::path& folder, EvaluateOn evaluate_on);

}  // namespace motley::learn
