// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/umad/umad_files.h"

#include "services/umad/umad_file.h"

#include <vector>

namespace ib::services {

// A program that is told may open others.
void UmadFiles::end_those_of(const fabric::Hca& hca) {
  const std::set<UmadFile*> all = files_;
  for (UmadFile* file : all) {
    const fabric::Port* port = fabric_.graph().port(file->port());
    if (files_.contains(file) && fabric_.hca_of(*port) == &hca) file->end();
  }
}

bool UmadFiles::end_those_that_have_gone(std::uint32_t port) {
  std::vector<UmadFile*> gone;
  for (UmadFile* file : files_) {
    if (file->port() == port && file->agents() != 0 && file->has_gone()) gone.push_back(file);
  }
  for (UmadFile* file : gone) file->end();
  return !gone.empty();
}

}  // namespace ib::services
