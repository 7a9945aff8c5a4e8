// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which service a program opens (verbs/services/open_service.h), and what it may do there.
#pragma once

#include "al/system.h"
#include "drivers/soft_hca/core.h"
#include "services/service_user.h"
#include "verbs/services/open_service.h"

#include <cstdint>
#include <string>

namespace ib::softib {

struct ProgramService {
  io::DeviceObject* device = nullptr;
  services::ServiceUser user;
  std::uint64_t process = 0;  // the session of the process that it is for
};

// `client`: the connection by which the request has come. Errors: as of ServiceCode::Open.
Result<ProgramService> find_service(const al::System& services, drivers::Core& core,
                                    const verbs::control::OpenServiceIn& in,
                                    const io::Client& client, std::string& reason);

}  // namespace ib::softib
