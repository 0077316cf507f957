package passkey

import "encoding/hex"

// models are the names of widespread authenticators by their AAGUID.
var models = map[string]string{
	"ea9b8d664d011d213ce4b6b48cb575d4": "Google Password Manager",
	"fbfc3007154e4ecc8c0b6e020557d7bd": "Apple Passwords",
	"dd4ec289e01d41c9bb8970fa845d4bf2": "iCloud Keychain",
	"adce000235bcc60a648b0b25f1f05503": "Chrome on macOS",
	"08987058cadc4b81b6e130de50dcbe96": "Windows Hello",
	"9ddd1817af5a4672a2b93e3dd95000a9": "Windows Hello",
	"6028b017b1d44c02b4b3afcdafc96bb2": "Windows Hello",
	"bada5566a7aa401fbd9645619a55120d": "1Password",
	"d548826e79b4db40a3d811116f7e8349": "Bitwarden",
	"531126d6e717415c93203d9aa6981239": "Dashlane",
	"b84e404815dc4dd08640f4f60813c8af": "NordPass",
	"50726f746f6e5061737350726f746f6e": "Proton Pass",
	"0ea242b443c44a1b8b17dd6d0b6baec6": "Keeper",
	"f38095407f1449c1a8b38f813b225541": "Enpass",
	"53414d53554e47000000000000000000": "Samsung Pass",
	"fdb141b25d84443e8a354698c205a502": "KeePassXC",
	"cb69481e8ff7403993ec0a2729a154a8": "YubiKey",
	"ee882879721c491397753dfcce97072a": "YubiKey",
}

// Model is the name of a widespread authenticator, or empty. The names are those listed
// here, never text from the request.
func (c Credential) Model() string { return models[hex.EncodeToString(c.AAGUID)] }
