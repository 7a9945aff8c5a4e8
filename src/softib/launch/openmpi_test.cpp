// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/launch/openmpi.h"

#include "softib/launch/defaults.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace ib::softib {
namespace {

TEST(OpenMpi, AFileOfParametersIsReadAsOpenMpiReadsIt) {
  const char* text = "# pml = cm\n\n  pml\t=  ob1  \nbtl=self,tcp\r\npml_ucx_tls = any # more\nosc";
  EXPECT_TRUE(sets_mca_parameter(text, "pml"));
  EXPECT_TRUE(sets_mca_parameter(text, "btl"));
  EXPECT_TRUE(sets_mca_parameter(text, "pml_ucx_tls"));
  EXPECT_FALSE(sets_mca_parameter(text, "pml_ucx"));
  EXPECT_FALSE(sets_mca_parameter(text, "osc"));
  EXPECT_FALSE(sets_mca_parameter("# pml = cm\n", "pml"));
  EXPECT_FALSE(sets_mca_parameter("", "pml"));
}

TEST(OpenMpi, AParameterOfTheUsersFileIsNotOverridden) {
  std::string home = (std::filesystem::temp_directory_path() / "softib-home-XXXXXX").string();
  ASSERT_NE(::mkdtemp(home.data()), nullptr);
  std::filesystem::create_directory(home + "/.openmpi");
  const std::string file = home + "/.openmpi/mca-params.conf";
  std::ofstream(file) << "pml = ob1\n";

  Environment environment{{"HOME", home}};
  EXPECT_EQ(mca_file_with(environment, "pml"), file);
  EXPECT_EQ(mca_file_with(environment, "btl"), "");
  EXPECT_EQ(mca_file_with({}, "pml"), "");
  add_defaults(environment);
  const auto has = [&](std::string_view name) {
    for (const auto& entry : environment) {
      if (entry.first == name) return true;
    }
    return false;
  };
  EXPECT_FALSE(has("OMPI_MCA_pml"));
  EXPECT_TRUE(has("OMPI_MCA_osc"));

  std::filesystem::remove_all(home);
  EXPECT_EQ(mca_file_with({{"HOME", home}}, "pml"), "");
}

}  // namespace
}  // namespace ib::softib
